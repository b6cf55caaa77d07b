//! A page without its scripts and styles: half of the bytes of a page and none of its text. The length of the rest
//! shows how long reading it takes, and it is read faster by code that goes through it more than once.

use crate::attributes::tag_of;

/// What code begins and ends with.
const KINDS: [(&str, &str); 3] = [("<!--", "-->"), ("<script", "</script"), ("<style", "</style")];
/// A drawing begins and ends with these.
const DRAWING: (&str, &str) = ("<svg", "</svg");
/// The elements of a drawing. Another one may end it, as a paragraph does, and be text.
const DRAWN: [&str; 24] = [
    "path",
    "g",
    "use",
    "circle",
    "rect",
    "title",
    "line",
    "polygon",
    "polyline",
    "ellipse",
    "defs",
    "symbol",
    "desc",
    "lineargradient",
    "radialgradient",
    "stop",
    "clippath",
    "mask",
    "pattern",
    "filter",
    "image",
    "text",
    "tspan",
    "metadata",
];
/// A tag longer than this is none.
const TAG_BYTES_MAX: usize = 1024;

/// Leaves out comments, scripts and styles, what is in a drawing, and attributes that are not read; structured data,
/// which are scripts by name, stay. What is not closed stays too.
#[must_use]
pub fn without_code(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    let (mut at, mut kept) = (0, 0);
    // What is not closed here is not closed further on, and need not be looked for again.
    let mut may_close = [true; KINDS.len()];
    let mut tags_close = true;
    while let Some(found) = html[at..].find('<') {
        let open = at + found;
        at = open + 1;
        let rest = &html[open..];
        if let Some((from, to)) = inside_drawing(rest) {
            // Its tags stay: how many drawings a page has says what kind of page it is.
            out.push_str(&html[kept..open + from]);
            (at, kept) = (open + to, open + to);
            continue;
        }
        if let Some(kind) = kind_at(rest).filter(|kind| may_close[*kind]) {
            match end_of(rest, KINDS[kind].1) {
                Some(length) if kind > 0 && holds_data(rest) => at = open + length,
                Some(length) => {
                    out.push_str(&html[kept..open]);
                    at = open + length;
                    kept = at;
                }
                None => may_close[kind] = false,
            }
            continue;
        }
        match tags_close.then(|| tag_of(rest)) {
            Some(Ok(Some(tag))) => {
                for unread in tag.unread {
                    out.push_str(&html[kept..open + unread.start]);
                    kept = open + unread.end;
                }
                at = open + tag.end;
            }
            Some(Err(_)) => tags_close = false,
            Some(Ok(None)) | None => {}
        }
    }
    out.push_str(&html[kept..]);
    out
}

/// The kind of code that `rest` begins with.
fn kind_at(rest: &str) -> Option<usize> {
    let kind = KINDS.iter().position(|(open, _)| begins_with(rest, open))?;
    (kind == 0 || start_tag(rest).is_some_and(|tag| name_of(&tag[1..]).len() + 1 == KINDS[kind].0.len()))
        .then_some(kind)
}

/// The tag that `rest` begins with, if it is not longer than a tag is.
fn start_tag(rest: &str) -> Option<&str> {
    Some(&rest[..=rest[..rest.floor_char_boundary(TAG_BYTES_MAX)].find('>')?])
}

/// Whether a script is structured data.
fn holds_data(rest: &str) -> bool {
    start_tag(rest).is_some_and(|tag| tag.contains("ld+json"))
}

fn begins_with(rest: &str, word: &str) -> bool {
    rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

/// Where the inside of a drawing begins and ends, if `rest` begins with one that has nothing but drawn elements.
fn inside_drawing(rest: &str) -> Option<(usize, usize)> {
    if !begins_with(rest, DRAWING.0) {
        return None;
    }
    let tag = start_tag(rest)?;
    if tag.ends_with("/>") || name_of(&tag[1..]).len() + 1 != DRAWING.0.len() {
        return None;
    }
    let mut at = tag.len();
    loop {
        at += rest[at..].find('<')?;
        let element = &rest[at..];
        if begins_with(element, DRAWING.1) {
            return Some((tag.len(), at));
        }
        let name = name_of(element[1..].trim_start_matches('/'));
        if !DRAWN.iter().any(|drawn| name.eq_ignore_ascii_case(drawn)) {
            return None;
        }
        at += 1;
    }
}

/// The name that a tag begins with.
fn name_of(tag: &str) -> &str {
    &tag[..tag.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(tag.len())]
}

/// Where the code that `rest` begins with ends.
fn end_of(rest: &str, close: &str) -> Option<usize> {
    let (first, mut at) = (&close[..2], KINDS[0].0.len());
    loop {
        at += rest[at..].find(first)?;
        if rest.get(at..at + close.len()).is_some_and(|end| end.eq_ignore_ascii_case(close)) {
            return Some(at + rest[at..].find('>')? + 1);
        }
        at += first.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_left_out_and_text_is_not() {
        for (html, kept) in [
            ("<p>a</p><script>if (a</b/.x) '<p>'</script ><p>b</p>", "<p>a</p><p>b</p>"),
            ("<STYLE type=x>p > a {}</Style>x", "x"),
            ("<!-- <script> -->x<script src=y></script>", "x"),
            ("<script type=\"application/ld+json\">{}</script>", "<script type=\"application/ld+json\">{}</script>"),
            ("<scripture>x</scripture>", "<scripture>x</scripture>"),
            ("<script>never closed", "<script>never closed"),
            ("a < b <!-- open", "a < b <!-- open"),
            ("待<script>つ</script>つ", "待つ"),
            ("a<svg x=1><path d=''/><title>Icon</title></svg>b", "a<svg x=1></svg>b"),
            ("<SVG><G></G></SVG><svg><p>text</svg>", "<SVG></SVG><svg><p>text</svg>"),
            ("<svg/><path></svg><svgs><path></svg>", "<svg/><path></svg><svgs><path></svg>"),
            ("<p data-x='>' class=a>b</p>", "<p  class=a>b</p>"),
            ("<A HREF=x onclick=\"a('<p>')\" >b", "<A HREF=x  >b"),
            // dom_smoothie leaves out dialogs by these two.
            ("<div role=dialog aria-modal=true data-y>x", "<div role=dialog aria-modal=true >x"),
            ("<p data-x=1class=a><p class=b data-x><p =a b = c>", "<p ><p class=b ><p  >"),
            ("<iframe data-src=x></iframe><b title=\"open>", "<iframe data-src=x></iframe><b title=\"open>"),
            (
                "<script type='application/ld+json'>\"<p data-x='1'>\"</script>",
                "<script type='application/ld+json'>\"<p data-x='1'>\"</script>",
            ),
            ("<svg><svg><path></svg>text</svg><svg><path>", "<svg><svg></svg>text</svg><svg><path>"),
        ] {
            assert_eq!(without_code(html), kept, "{html}");
        }
    }

    #[test]
    fn a_page_of_openings_takes_no_more_than_a_moment() {
        for opening in [
            "<script>",
            "<!--",
            "<!-- --",
            "<style ",
            "<script></",
            "<script ld+json ",
            "<svg>",
            "<svg><path>",
            "<svg ",
            "<a ",
            "<a b=\"",
            "<a b='\" ",
        ] {
            let html = opening.repeat(1_000_000 / opening.len());
            let (tell, done) = std::sync::mpsc::channel();
            std::thread::spawn(move || tell.send(without_code(&html) == html));
            assert_eq!(done.recv_timeout(std::time::Duration::from_secs(20)), Ok(true), "{opening}");
        }
    }
}
