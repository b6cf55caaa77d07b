//! Which tools a connection offers: toolsets by name, `all`, or the default `core`.

use matsu_core::access::Rights;

use super::rights;
use crate::tool::{ToolEntry, Toolset};
use crate::tools::TOOLS;

/// The tools of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    sets: Vec<Toolset>,
    core: bool,
    /// What a session that Matsu started was granted; decides alone.
    granted: Option<String>,
    /// What the caller's token is limited to.
    limit: Option<Box<Self>>,
    /// The caller may only look.
    reads_only: bool,
}

impl Default for Offer {
    fn default() -> Self {
        Self { sets: Vec::new(), core: true, ..Self::nothing() }
    }
}

impl Offer {
    fn nothing() -> Self {
        Self { sets: Vec::new(), core: false, granted: None, limit: None, reads_only: false }
    }

    /// Reads `--tools`: `core`, `all`, or toolsets separated by commas.
    ///
    /// # Errors
    /// A word that is none of these.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut offer = Self::nothing();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match (word, Toolset::ALL.iter().find(|set| set.as_str() == word)) {
                ("core", _) => offer.core = true,
                ("all", _) => offer.sets.extend(Toolset::ALL),
                (_, Some(set)) => offer.sets.push(*set),
                _ => return Err(format!("{word} is not a toolset; use core, research, agents, sessions or all")),
            }
        }
        if offer.sets.is_empty() && !offer.core { Ok(Self::default()) } else { Ok(offer) }
    }

    /// Every toolset.
    #[must_use]
    pub fn all() -> Self {
        Self { sets: Toolset::ALL.to_vec(), ..Self::nothing() }
    }

    /// One toolset.
    #[must_use]
    pub fn of(set: Toolset) -> Self {
        Self { sets: vec![set], ..Self::nothing() }
    }

    /// What a session that Matsu started sees: `sessions`, and what its definition grants.
    #[must_use]
    pub fn granted(grants: &str) -> Self {
        Self { granted: Some(grants.to_owned()), ..Self::nothing() }
    }

    /// The same without what a token is limited to, and without what its role may never call.
    #[must_use]
    pub fn within(&self, rights: &Rights) -> Self {
        let tools = rights.tools.as_deref().and_then(|tools| Self::parse(tools).ok()).map(Box::new);
        Self { limit: tools.or_else(|| self.limit.clone()), reads_only: !rights.may_write(), ..self.clone() }
    }

    /// The offered tools, always in the order of the one list.
    pub fn tools(&self) -> impl Iterator<Item = &'static ToolEntry> {
        TOOLS.iter().filter(|tool| self.offers(tool))
    }

    #[must_use]
    pub fn find(&self, name: &str) -> Option<&'static ToolEntry> {
        self.tools().find(|tool| tool.name == name)
    }

    fn offers(&self, tool: &ToolEntry) -> bool {
        if self.limit.as_ref().is_some_and(|limit| !limit.offers(tool)) || (self.reads_only && !tool.is_for_viewers()) {
            return false;
        }
        if let Some(grants) = &self.granted {
            return rights::allows(Some(grants), tool);
        }
        self.sets.contains(&tool.toolset) || (self.core && tool.core)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_word_is_refused_by_name() {
        assert!(Offer::parse("reserch").unwrap_err().contains("reserch"));
        assert_eq!(Offer::parse(""), Ok(Offer::default()));
    }

    #[test]
    fn each_preset_offers_what_it_says() {
        let names = |text: &str| Offer::parse(text).unwrap().tools().map(|tool| tool.name).collect::<Vec<_>>();
        let core = TOOLS.iter().filter(|tool| tool.core).map(|tool| tool.name).collect::<Vec<_>>();
        assert_eq!(names("core"), core);
        assert_eq!(core.len(), 10, "{core:?}");
        assert_eq!(names("all"), TOOLS.iter().map(|tool| tool.name).collect::<Vec<_>>());
        assert!(names("agents").contains(&"cancel_task"));
        assert!(!names("research").contains(&"cancel_task"));
    }

    #[test]
    fn descriptions_are_short_and_begin_with_their_domain() {
        for tool in TOOLS.iter() {
            assert!(tool.description.chars().count() <= 600, "{}", tool.name);
            let domain = tool.description.split(':').next().unwrap_or("");
            assert!(["Research", "Agent", "Session", "Task"].contains(&domain), "{}", tool.name);
        }
    }
}
