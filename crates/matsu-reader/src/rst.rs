//! reStructuredText, which the documentation of most Python packages is written in: its marks are taken away, so that
//! plain text is left. Lines stay lines, and headings keep the rule below them. A line of code begins with `CODE_MARK`,
//! any other without white space.

use matsu_core::research::ranking::candidates::CODE_MARK;

/// Directives whose text is part of the text. That of others is code, a picture, a list of files.
pub const SPOKEN: [&str; 12] = [
    "note",
    "warning",
    "tip",
    "hint",
    "important",
    "caution",
    "danger",
    "admonition",
    "seealso",
    "versionadded",
    "versionchanged",
    "deprecated",
];
/// Directives whose indented lines are no text: code, lists of files, formulas.
const CODE: [&str; 14] = [
    "code-block",
    "code",
    "sourcecode",
    "parsed-literal",
    "literalinclude",
    "console",
    "prompt",
    "doctest",
    "testcode",
    "testoutput",
    "productionlist",
    "math",
    "raw",
    "toctree",
];
/// So many different marks tell it from a plain text that has one of them by chance.
const MARKS_MIN: usize = 2;

/// How far before the end of a text a mark may have begun that goes on.
const OPEN_BYTES_MAX: usize = 300;

/// Whether a text has the marks of reStructuredText.
pub fn is_rst(source: &str) -> bool {
    let has_role = source.split(":`").skip(1).any(|after| after.contains('`'));
    let has_directive = source.lines().any(|line| line.trim_start().starts_with(".. "));
    let marks = [has_role, has_directive, source.contains("``"), source.contains("`_"), source.contains("::\n")];
    marks.iter().filter(|has| **has).count() >= MARKS_MIN
}

/// The same text without marks.
pub fn plain(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut after_directive = false;
    // How far the line is indented that code follows.
    let mut code_below = None;
    // The beginning of a mark that goes on in the next line.
    let mut open = String::new();
    // What the last directive describes, such as the name of a setting.
    let mut object = "";
    // The fields at the beginning are about the document.
    let mut is_first = true;
    // How far the line before was indented, if it was text.
    let mut before = None;
    for line in source.lines() {
        let trimmed = line.trim();
        let field = field(trimmed);
        if is_first && field.is_some() {
            continue;
        }
        is_first &= trimmed.is_empty();
        let indent = line.len() - line.trim_start().len();
        if !open.is_empty() && (trimmed.is_empty() || trimmed.starts_with("..")) {
            out.push_str(&inline(&std::mem::take(&mut open)));
            out.push('\n');
        }
        let is_option = after_directive && field.is_some();
        if !trimmed.is_empty() && code_below.is_some_and(|outer| indent <= outer) {
            code_below = None;
        }
        if let Some(explicit) = trimmed.strip_prefix("..").filter(|rest| rest.is_empty() || rest.starts_with(' ')) {
            after_directive = true;
            let (name, argument) =
                explicit.split_once("::").map_or(("", ""), |(name, rest)| (name.trim(), rest.trim()));
            code_below = code_below.or(CODE.contains(&name).then_some(indent));
            object = argument;
            out.push_str(&inline(spoken(explicit.trim())));
        } else if is_option {
            // Settings of a directive are no text, but for what a setting of a program is without being set.
            if let Some(("default", value)) = field.filter(|_| !object.is_empty()) {
                out.push_str(&format!("\n- {object}: the default is {}.\n", inline(value.trim_end_matches('.'))));
            }
        } else if trimmed.starts_with(">>> ") {
            code_below = code_below.or(indent.checked_sub(1));
            out.push_str(CODE_MARK);
            out.push_str(line.trim_end());
        } else if code_below.is_some() && !trimmed.is_empty() {
            out.push_str(CODE_MARK);
            out.push_str(line.trim_end());
        } else {
            // What is indented less than the line before it is another block, such as the next entry of a glossary.
            if open.is_empty() && before.is_some_and(|before| indent < before) && !trimmed.is_empty() {
                out.push('\n');
            }
            before = Some(indent).filter(|_| !trimmed.is_empty());
            after_directive &= trimmed.is_empty();
            let head = trimmed.strip_suffix("::");
            code_below = code_below.or(head.map(|_| indent));
            let text = head.map_or(trimmed, |head| &trimmed[..head.len() + 1]);
            if !open.is_empty() {
                open.push(' ');
            } else if let Some((name, text)) = field {
                // Each field of a list is a line of its own.
                out.push_str(&format!("- {}: ", inline(name)));
                open.push_str(text);
            }
            if field.is_none() || open.is_empty() {
                open.push_str(text);
            }
            if head.is_none() && ends_in_mark(&open) {
                continue;
            }
            out.push_str(&inline(&std::mem::take(&mut open)));
        }
        out.push('\n');
    }
    out.push_str(&inline(&open));
    out
}

/// Whether a mark begins in a text and does not end there. One that stays open for long is none.
fn ends_in_mark(text: &str) -> bool {
    let last = text.len().saturating_sub(OPEN_BYTES_MAX);
    text.matches('`').count() % 2 == 1 && text.rfind('`').is_some_and(|at| at >= last)
}

/// Name and text of a field, as in `:default: 3`. A role at the beginning of a line is none.
fn field(line: &str) -> Option<(&str, &str)> {
    let (name, text) = line.strip_prefix(':')?.split_once(':')?;
    let is_name = !name.is_empty() && !name.starts_with(' ') && !name.contains('`');
    (is_name && (text.is_empty() || text.starts_with(' '))).then(|| (name, text.trim()))
}

/// What a directive says in its own line; nothing, if it is a comment, a target or code.
fn spoken(explicit: &str) -> &str {
    let Some((name, text)) = explicit.split_once("::") else { return "" };
    if SPOKEN.contains(&name.trim()) { text.trim() } else { "" }
}

/// A line without the marks in it: of code, of roles with their targets, of words with an address.
fn inline(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('`') {
        let (before, quoted) = rest.split_at(at);
        let ticks = if quoted.starts_with("``") { "``" } else { "`" };
        let Some(length) = quoted[ticks.len()..].find(ticks) else { break };
        let inside = &quoted[ticks.len()..ticks.len() + length];
        match role(before).filter(|_| ticks == "`") {
            Some(colon) => {
                out.push_str(&without_stars(&before[..colon]));
                out.push_str(last_part(words(inside)));
            }
            None => {
                out.push_str(&without_stars(before));
                out.push_str(if ticks == "`" { words(inside) } else { inside });
            }
        }
        rest = quoted[2 * ticks.len() + length..].trim_start_matches('_');
    }
    out.push_str(&without_stars(rest));
    out
}

/// Text without the marks of `**bold words**` and `*words*`, and without the numbers of footnotes. Stars that embrace no
/// words stay.
fn without_stars(text: &str) -> String {
    without_single_stars(&without_footnotes(&without_double_stars(text)))
}

/// `A word [#]_ here` without the number of a note.
fn without_footnotes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("]_") {
        let ends = after.chars().next().is_none_or(|c| !c.is_alphanumeric());
        let is_mark = |c: char| c.is_ascii_alphanumeric() || matches!(c, '#' | '*' | '-' | '_' | '.');
        match before.rsplit_once('[').filter(|(_, name)| ends && !name.is_empty() && name.chars().all(is_mark)) {
            Some((words, _)) => out.push_str(words.trim_end()),
            None => {
                out.push_str(before);
                out.push_str("]_");
            }
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

fn without_single_stars(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('*') {
        let opens = !before.ends_with(|c: char| c.is_alphanumeric() || c == '*');
        let length = after.find('*').filter(|_| opens);
        let words = length.map(|length| after.split_at(length)).filter(|(words, end)| {
            let follows = end[1..].chars().next();
            let is_end = follows.is_none_or(|c| !c.is_alphanumeric() && c != '*');
            is_end && words.starts_with(char::is_alphanumeric) && !words.ends_with(char::is_whitespace)
        });
        out.push_str(before);
        match words {
            Some((words, end)) => {
                out.push_str(words);
                rest = &end[1..];
            }
            None => {
                out.push('*');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

fn without_double_stars(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("**") {
        out.push_str(before);
        match after.split_once("**") {
            Some((bold, then)) if !bold.is_empty() && bold.trim() == bold => {
                out.push_str(bold);
                rest = then;
            }
            _ => {
                out.push_str("**");
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// Where a role begins that ends a text, as `:ref:` or `:py:func:`.
fn role(text: &str) -> Option<usize> {
    let inside = text.strip_suffix(':')?;
    let start = inside
        .rfind(|c: char| !is_of_name(c))
        .map_or(0, |at| at + inside[at..].chars().next().map_or(1, char::len_utf8));
    let colon = if inside[start..].starts_with(':') { start } else { start + inside[start..].rfind(':')? };
    (colon + 1 < inside.len()).then_some(colon)
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '+')
}

/// `words <target>` without its target.
pub fn words(inside: &str) -> &str {
    match inside.split_once('<') {
        Some((words, target)) if target.ends_with('>') && !words.trim().is_empty() => words.trim(),
        _ => inside,
    }
}

/// `~package.module.Name` is shown as its last part.
fn last_part(target: &str) -> &str {
    let Some(path) = target.strip_prefix('~') else { return target.trim_start_matches('!') };
    path.rsplit('.').find(|part| !part.is_empty()).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_taken_away_and_words_stay() {
        for (source, text) in [
            ("Use ``call_command()`` of :mod:`django.core`.", "Use call_command() of django.core."),
            ("See :class:`~a.b.Error` and :ref:`this page <x-y>`.", "See Error and this page."),
            ("The `guide <https://x/y>`_ and `more`__ help.", "The guide and more help."),
            ("A foot is 12` and :no role", "A foot is 12` and :no role"),
            (".. note:: Read ``this``.", "Read this."),
            ("Read `the long\nguide <https://x/\ny>`_ first.\nThen go.", "Read the long guide first.\nThen go."),
            ("A lone ` stays.\n\nNext.", "A lone ` stays.\n\nNext."),
            ("* **W010**: set ``a``, **not** ``**b``.", "* W010: set a, not **b."),
            ("2 ** 3 ** 4", "2 ** 3 ** 4"),
            ("One task *per process* at *a* time.", "One task per process at a time."),
            ("2 * 3 * 4, *args and *kwargs, a*b*c", "2 * 3 * 4, *args and *kwargs, a*b*c"),
            ("* an item\n* *another* one", "* an item\n* another one"),
            ("Slots [*]_ count, pages [#pages]_. See [1]_.", "Slots count, pages. See."),
            ("a[i]_j and [a link]_ stay", "a[i]_j and [a link]_ stay"),
            (".. _label:", ""),
            (".. code-block:: python\n   :linenos:\n\n   x = 1\n\nText.", "\n\n\n       x = 1\n\nText."),
            ("Like this::\n\n  a: `b`\n\n  c\nText `x`.", "Like this:\n\n      a: `b`\n\n      c\nText x."),
            (".. function:: f(x)\n\n   It ``waits``.", "\n\nIt waits."),
            ("Title\n=====", "Title\n====="),
            ("時刻は ``now`` です", "時刻は now です"),
            ("Call :py:func:`pytest.fixture` or :std:term:`entry point`.", "Call pytest.fixture or entry point."),
            (":tocdepth: 3\n\nTitle\n=====", "\nTitle\n====="),
            (
                "Codes:\n\n:Exit code 0: All ``passed``\n:Exit code 1: Some\n  failed.",
                "Codes:\n\n- Exit code 0: All passed\n- Exit code 1: Some\nfailed.",
            ),
            (
                ".. confval:: cache_dir\n   :type: ``str``\n   :default: ``\".cache\"``\n\n   Where.",
                "\n\n\n- cache_dir: the default is \".cache\".\n\n\nWhere.",
            ),
            (
                "``key``\n    What ``it`` opens.\n``lock``\n    What it shuts,\n    if at all.",
                "key\nWhat it opens.\n\nlock\nWhat it shuts,\nif at all.",
            ),
            (">>> print(1)\n1\n\nText.", "    >>> print(1)\n1\n\nText."),
            (":ref:`x` is here.", "x is here."),
        ] {
            assert_eq!(plain(source).trim_end_matches('\n'), text.trim_end_matches('\n'), "{source}");
        }
    }

    #[test]
    fn a_plain_text_is_not_taken_for_it() {
        assert!(is_rst(".. _top:\n\nSee :doc:`intro`."));
        assert!(!is_rst("A note. It says: `this`.\nAnd .. that."));
        assert!(!is_rst("let x = std::mem::take(y);\n\nfoo::\n"));
    }

    proptest::proptest! {
        #[test]
        fn no_text_breaks_it(source in "[`:<>_~.\\PC\n]{0,200}") {
            let _ = (is_rst(&source), plain(&source));
        }
    }
}
