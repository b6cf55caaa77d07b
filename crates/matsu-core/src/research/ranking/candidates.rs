//! Which sentences of a passage can be claims: whole ones that state something. Headings, code, table rows, menus,
//! links, questions and sentences of pronouns alone are none.
//!
//! Readers write blocks one a line: a list item begins with `- `, a table row with `| `, a line of code with four
//! spaces.

use super::super::sentences::{Sentence, is_wide, sentences};

/// A line of code begins with this.
pub const CODE_MARK: &str = "    ";
/// A list item begins with this.
pub const ITEM_MARK: &str = "- ";
/// A row of a table begins with this.
pub const ROW_MARK: &str = "| ";

/// Longer ones say too many things at once.
const CHARS_MAX: usize = 800;
/// Shorter ones are labels.
const CHARS_MIN: usize = 12;
const CHARS_MIN_WIDE: usize = 6;
/// Fewer words are a name.
const WORDS_MIN: usize = 3;
/// A line without a full stop is a statement only from this length on: shorter ones are headings.
const OPEN_CHARS_MIN: usize = 80;
const OPEN_CHARS_MIN_WIDE: usize = 36;
const PRONOUNS: &[&str] = &[
    "it", "this", "that", "these", "those", "they", "he", "she", "we", "you", "i", "is", "are", "was", "were", "does",
    "do", "did", "so", "not", "the", "a", "yes", "no", "es", "das", "dies", "er", "sie", "ist", "sind", "war", "so",
];

/// A sentence that can be a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub span: Sentence,
    /// For an item of a list: where the sentence is that leads to the list.
    pub lead_in: Option<LeadIn>,
}

/// Where the sentence stands that leads to a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeadIn {
    /// In the passage itself.
    Here(Sentence),
    /// In front of the passage, if anywhere: the list began in an earlier one.
    Before,
}

/// The candidates of a passage. `headings` are those that may stand in it as lines.
#[must_use]
pub fn candidates(text: &str, headings: &[&str]) -> Vec<Candidate> {
    let mut found = Vec::new();
    let mut lead_in = Some(LeadIn::Before);
    let mut start = 0;
    for line in text.split('\n') {
        let at = start;
        start += line.len() + 1;
        if is_between(line) {
            continue;
        }
        let is_item = line.starts_with(ITEM_MARK);
        let offset = at + if is_item { ITEM_MARK.len() } else { 0 };
        let body = &text[offset..at + line.len()];
        let mut spans: Vec<Sentence> = sentences(body)
            .into_iter()
            .map(|span| Sentence { start: span.start + offset, end: span.end + offset })
            .collect();
        join_defaults(text, &mut spans);
        if !is_item {
            let last = spans.last().copied();
            lead_in = last.filter(|span| leads_in(&text[span.start..span.end])).map(LeadIn::Here);
        }
        for span in spans {
            let sentence = &text[span.start..span.end];
            if !headings.contains(&sentence) && is_statement(sentence, is_item) {
                found.push(Candidate { span, lead_in: lead_in.filter(|_| is_item) });
            }
        }
    }
    found
}

/// The sentence that leads to the list at the end of a passage, if it ends with one: items of the list may follow in the
/// next passage. `before` is what the same said of the passage before it.
#[must_use]
pub fn lead_in_at_end(text: &str, before: Option<String>) -> Option<String> {
    let mut lines = text.split('\n').filter(|line| !is_between(line) && !line.starts_with(ITEM_MARK));
    let Some(last) = lines.next_back() else { return before };
    let span = sentences(last).pop()?;
    let sentence = &last[span.start..span.end];
    leads_in(sentence).then(|| sentence.to_owned())
}

fn leads_in(sentence: &str) -> bool {
    sentence.ends_with([':', '：'])
}

/// Lines that a list goes on behind.
fn is_between(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with(CODE_MARK) || line.starts_with(ROW_MARK)
}

/// What something is by default says nothing without the sentence before it: `Codes to retry. Default: [429].`
fn join_defaults(text: &str, spans: &mut Vec<Sentence>) {
    let is_default = |span: &Sentence| {
        let sentence = &text[span.start..span.end];
        ["Default:", "Defaults to", "Default is", "Defaults:"].iter().any(|word| sentence.starts_with(word))
    };
    let mut joined: Vec<Sentence> = Vec::with_capacity(spans.len());
    for span in spans.drain(..) {
        match joined.last_mut().filter(|_| is_default(&span)) {
            Some(before) => before.end = span.end,
            None => joined.push(span),
        }
    }
    *spans = joined;
}

fn is_statement(text: &str, is_item: bool) -> bool {
    let count = text.chars().count();
    let is_wide_text = text.chars().filter(|c| is_wide(*c)).count() * 3 > count;
    let (least, open) = if is_wide_text { (CHARS_MIN_WIDE, OPEN_CHARS_MIN_WIDE) } else { (CHARS_MIN, OPEN_CHARS_MIN) };
    // A bare name in a list states nothing.
    if !is_wide_text && text.split_whitespace().nth(WORDS_MIN - 1).is_none() {
        return false;
    }
    let open = if is_item { least } else { open };
    if !(least..=CHARS_MAX).contains(&count) || (!ends_as_sentence(text) && count < open) {
        return false;
    }
    let closed = without_closers(text);
    !closed.ends_with(['?', '？', ':', '：'])
        && !is_frame(text)
        && !is_reference(text, count)
        && !is_pronouns_only(text, is_wide_text)
}

fn without_closers(text: &str) -> &str {
    text.trim_end_matches(['"', '\'', ')', ']', '”', '’', '“', '»', '」', '』', '）'])
}

fn ends_as_sentence(text: &str) -> bool {
    without_closers(text).ends_with(['.', '!', '?', '。', '！', '？', '…', '｡', ';', '；'])
}

/// Longer ones say something besides where it is said.
const REFERENCE_CHARS_MAX: usize = 160;

/// A sentence that only says where something is said: `See the settings for details.`
fn is_reference(text: &str, count: usize) -> bool {
    let starts = ["See ", "Refer to ", "Siehe ", "Voir "];
    let has_default = text.contains("Default");
    count <= REFERENCE_CHARS_MAX
        && !has_default
        && starts.iter().any(|start| text.trim_start_matches(['(', '[']).starts_with(start))
}

/// Menus, link lists, paths and templates: what frames a page.
fn is_frame(text: &str) -> bool {
    let dividers: usize = [" | ", " › ", " » ", " · "].iter().map(|divider| text.matches(divider).count()).sum();
    let letters = text.chars().filter(|c| c.is_alphanumeric()).count();
    let is_link = text.contains("](") || text.contains("{{") || text.contains("{%");
    let addresses: usize =
        text.split_whitespace().filter(|word| word.contains("://") || word.starts_with("www.")).map(str::len).sum();
    dividers >= 2
        || is_link
        || addresses * 2 > text.len()
        || letters * 2 < text.chars().filter(|c| !c.is_whitespace()).count()
}

fn is_pronouns_only(text: &str, is_wide_text: bool) -> bool {
    let telling = |word: &&str| !word.is_empty() && !PRONOUNS.contains(&word.to_lowercase().as_str());
    !is_wide_text && text.split(|c: char| !c.is_alphanumeric()).filter(telling).count() < 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        candidates(text, &["The heading of this section here."])
            .iter()
            .map(|c| &text[c.span.start..c.span.end])
            .collect()
    }

    #[test]
    fn only_whole_statements_are_candidates() {
        let text = "The heading of this section here.\nUsing addContentTypeParser with fastify.register\nHome | Docs | About | Contact\nPods are deleted after five minutes. Why is that so?\n    let x = \"a line of code that is long enough.\";\n| Name | The value of it. |\nSee [the docs](../docs.md) for more of this.\nIt is.\nThis does not do so.\nhttps://example.org/a/very/long/address/of/a/page.html see.\n{{< glossary_tooltip text=\"pods\" >}} are here.";
        assert_eq!(texts(text), ["Pods are deleted after five minutes."]);
        assert_eq!(texts("ゾウガメの寿命は百年を超える。それは何か？"), ["ゾウガメの寿命は百年を超える。"]);
    }

    #[test]
    fn a_sentence_that_only_points_elsewhere_is_no_claim() {
        let text = "The limit is 2 MB. See also DATA_UPLOAD_MAX_MEMORY_SIZE. (See the guide of limits.)\nSeen from the coast, the tower is white.";
        assert_eq!(texts(text), ["The limit is 2 MB.", "Seen from the coast, the tower is white."]);
    }

    #[test]
    fn a_default_goes_with_what_it_is_the_default_of_and_a_name_is_no_claim() {
        let text = "- statusCodes number[] (optional) - Codes to retry. Default: [429, 500]\n- strict_config_settings";
        assert_eq!(texts(text), ["statusCodes number[] (optional) - Codes to retry. Default: [429, 500]"]);
    }

    #[test]
    fn list_items_have_their_lead_in() {
        let text = "A node can be in one of these states:\n- Ready to take new pods\n- Unknown, which means lost.\nA paragraph follows the list.";
        let found = candidates(text, &[]);
        let of = |span: Sentence| &text[span.start..span.end];
        let lead_in_of = |lead_in: LeadIn| match lead_in {
            LeadIn::Here(span) => of(span),
            LeadIn::Before => "before",
        };
        let seen: Vec<(&str, Option<&str>)> = found.iter().map(|c| (of(c.span), c.lead_in.map(lead_in_of))).collect();
        let lead_in = Some("A node can be in one of these states:");
        assert_eq!(
            seen,
            [
                ("Ready to take new pods", lead_in),
                ("Unknown, which means lost.", lead_in),
                ("A paragraph follows the list.", None)
            ]
        );
    }

    #[test]
    fn a_list_goes_on_in_the_next_passage() {
        let first = "One paragraph. A node can be in one of these states:\n- Ready to take new pods\n    code";
        let lead_in = lead_in_at_end(first, None);
        assert_eq!(lead_in.as_deref(), Some("A node can be in one of these states:"));
        let items = "- Unknown, which means lost.\n- Draining, which means that it leaves.";
        let found = candidates(items, &[]);
        assert!(found.iter().all(|candidate| candidate.lead_in == Some(LeadIn::Before)), "{found:?}");
        assert_eq!(lead_in_at_end(items, lead_in.clone()), lead_in);
        assert_eq!(lead_in_at_end("A paragraph ends the list.\n- An item of another one", lead_in), None);
    }
}
