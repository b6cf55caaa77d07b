//! The server's answers: rules, the first that fits answers. Scripts can be written in Rust or read from JSON.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::request::Asked;

/// One piece of an answer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    Text(String),
    Tool { name: String, arguments: Value },
}

/// How a request is answered.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// A whole answer.
    Say(Vec<Part>),
    /// The same after a pause in which nothing is sent, not even headers.
    After { ms: u64, say: Vec<Part> },
    /// The answer begins with this text and then nothing comes any more.
    Hang(String),
    /// The answer begins with this text and the connection is closed without an end.
    Cut(String),
    /// These pieces as they are, whatever the format: a stream that was recorded elsewhere.
    Raw(Vec<String>),
    /// An HTTP error in the format's own shape, with `Retry-After` if seconds are given.
    Refuse { status: u16, message: String, retry_after: Option<u64> },
}

impl Reply {
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Say(vec![Part::Text(text.to_owned())])
    }

    #[must_use]
    pub fn tool(name: &str, arguments: Value) -> Self {
        Self::Say(vec![Part::Tool { name: name.to_owned(), arguments }])
    }

    #[must_use]
    pub fn error(status: u16, message: &str) -> Self {
        Self::Refuse { status, message: message.to_owned(), retry_after: None }
    }

    #[must_use]
    pub fn after(pause: Duration, say: Vec<Part>) -> Self {
        Self::After { ms: u64::try_from(pause.as_millis()).unwrap_or(u64::MAX), say }
    }
}

/// Which requests a rule is for; all that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct When {
    /// The last message has this in it.
    pub last: Option<String>,
    /// Any message has this in it.
    pub anywhere: Option<String>,
    /// A tool whose name ends so is on offer.
    pub tool: Option<String>,
    /// The model's name has this in it.
    pub model: Option<String>,
}

impl When {
    #[must_use]
    pub fn holds(&self, asked: &Asked) -> bool {
        let given = |wanted: &Option<String>, holds: &dyn Fn(&str) -> bool| wanted.as_deref().is_none_or(holds);
        given(&self.last, &|text| asked.last().contains(text))
            && given(&self.anywhere, &|text| asked.messages.iter().any(|message| message.contains(text)))
            && given(&self.tool, &|name| asked.tools.iter().any(|tool| tool.ends_with(name)))
            && given(&self.model, &|name| asked.model.contains(name))
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    #[serde(default)]
    pub when: When,
    pub reply: Reply,
    /// How often it answers; absent: always.
    pub times: Option<u32>,
}

/// The first rule that fits and is not used up answers; where none does, the answer is "ok".
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Script {
    rules: Vec<Rule>,
}

impl Script {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whenever the last message has `last` in it.
    #[must_use]
    pub fn on(self, last: &str, reply: Reply) -> Self {
        let when = When { last: Some(last.to_owned()), ..When::default() };
        self.rule(Rule { when, reply, times: None })
    }

    /// To the next request, whatever it contains; one after the other.
    #[must_use]
    pub fn then(self, reply: Reply) -> Self {
        self.rule(Rule { when: When::default(), reply, times: Some(1) })
    }

    /// To everything that no other rule fits.
    #[must_use]
    pub fn always(self, reply: Reply) -> Self {
        self.rule(Rule { when: When::default(), reply, times: None })
    }

    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    pub fn reply(&mut self, asked: &Asked) -> Reply {
        let rule = self.rules.iter_mut().find(|rule| rule.times != Some(0) && rule.when.holds(asked));
        match rule {
            Some(rule) => {
                rule.times = rule.times.map(|left| left - 1);
                rule.reply.clone()
            }
            None => Reply::text("ok"),
        }
    }
}
