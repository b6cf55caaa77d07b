//! How deep the elements of a page are nested, without parsing it. Parsers take time that grows with the square of it,
//! so a page that is nested absurdly deep is refused before one sees it.

/// No page that people read comes near this.
pub const DEPTH_MAX: usize = 20_000;

/// Elements that hold nothing, or that the next of their kind closes: they do not add up.
const FLAT: [&str; 34] = [
    "area", "base", "br", "col", "dd", "dt", "embed", "frame", "hr", "img", "input", "keygen", "li", "link", "meta",
    "optgroup", "option", "p", "param", "rb", "rp", "rt", "rtc", "source", "tbody", "td", "tfoot", "th", "thead", "tr",
    "track", "wbr", "colgroup", "caption",
];
/// Elements whose content is text, whatever it looks like.
const RAW: [&str; 7] = ["script", "style", "textarea", "title", "xmp", "iframe", "noembed"];

/// Whether more than `depth_max` elements are open at once. A rough count: what a parser would correct counts as it
/// stands there.
pub fn is_deeper_than(html: &str, depth_max: usize) -> bool {
    // Nearly every page has fewer tags than that, and counting them costs next to nothing.
    if html.bytes().filter(|byte| *byte == b'<').count() <= depth_max {
        return false;
    }
    let mut depth = 0_usize;
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('/') {
            let name = name_of(after);
            if !name.is_empty() && !FLAT.iter().any(|flat| name.eq_ignore_ascii_case(flat)) {
                depth = depth.saturating_sub(1);
            }
            rest = after;
            continue;
        }
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = comment.find("-->").map_or("", |end| &comment[end..]);
            continue;
        }
        let name = name_of(rest);
        if let Some(raw) = RAW.iter().find(|raw| name.eq_ignore_ascii_case(raw)) {
            rest = after_raw(&rest[name.len()..], raw);
        } else if !name.is_empty() && !FLAT.iter().any(|flat| name.eq_ignore_ascii_case(flat)) {
            depth += 1;
            if depth > depth_max {
                return true;
            }
        }
    }
    false
}

fn name_of(text: &str) -> &str {
    if !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return "";
    }
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != ':').unwrap_or(text.len());
    &text[..end]
}

/// What follows the end tag of a raw text element.
fn after_raw<'a>(text: &'a str, name: &str) -> &'a str {
    let mut rest = text;
    while let Some(at) = rest.find("</") {
        rest = &rest[at + 2..];
        if name_of(rest).eq_ignore_ascii_case(name) {
            return rest;
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_open_elements_add_up() {
        assert!(is_deeper_than(&"<div>".repeat(11), 10));
        assert!(is_deeper_than(&"<SPAN class='a'>".repeat(11), 10));
        assert!(is_deeper_than(&"<svg><g/>".repeat(11), 10));
        for page in [
            "<div>".repeat(10),
            "<div>a</div>".repeat(500),
            "<p>a<br><li>b<td>c".repeat(500),
            format!("<script>{}</script>", "if (a<b) x();".repeat(500)),
            format!("<!-- {} -->", "<div>".repeat(500)),
            "1 < 2 ".repeat(500),
        ] {
            assert!(!is_deeper_than(&page, 10), "{page:.80}");
        }
    }

    #[test]
    fn what_stands_after_raw_text_counts() {
        let page = format!("<style>a</style x>{}", "<div>".repeat(11));
        assert!(is_deeper_than(&page, 10));
        assert!(!is_deeper_than(&format!("<title>never closed {}", "<div>".repeat(11)), 10));
    }
}
