//! A page without its scripts and styles: half of the bytes of a page and none of its text. The length of the rest
//! shows how long reading it takes, and it is read faster by code that goes through it more than once.

/// What code begins and ends with.
const KINDS: [(&str, &str); 3] = [("<!--", "-->"), ("<script", "</script"), ("<style", "</style")];
/// A tag longer than this is none.
const TAG_BYTES_MAX: usize = 1024;

/// Leaves out comments, scripts and styles; structured data, which are scripts by name, stay. What is not closed stays too.
#[must_use]
pub fn without_code(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    let (mut at, mut kept) = (0, 0);
    // What is not closed here is not closed further on, and need not be looked for again.
    let mut may_close = [true; KINDS.len()];
    while let Some(found) = html[at..].find('<') {
        let open = at + found;
        at = open + 1;
        let rest = &html[open..];
        let Some(kind) = kind_at(rest).filter(|kind| may_close[*kind]) else { continue };
        if kind > 0 && !is_code_tag(rest) {
            continue;
        }
        match end_of(rest, KINDS[kind].1) {
            Some(length) => {
                out.push_str(&html[kept..open]);
                at = open + length;
                kept = at;
            }
            None => may_close[kind] = false,
        }
    }
    out.push_str(&html[kept..]);
    out
}

/// The kind of code that `rest` seems to begin with.
fn kind_at(rest: &str) -> Option<usize> {
    KINDS.iter().position(|(open, _)| rest.get(..open.len()).is_some_and(|start| start.eq_ignore_ascii_case(open)))
}

/// Whether a whole tag stands here, by the name of its kind, that does not hold structured data.
fn is_code_tag(rest: &str) -> bool {
    let Some(end) = rest[..rest.floor_char_boundary(TAG_BYTES_MAX)].find('>') else { return false };
    let name_ends = |c: char| c.is_ascii_whitespace() || matches!(c, '>' | '/');
    let name = &rest[1..=end];
    let word = name.find(name_ends).map_or(name, |at| &name[..at]);
    KINDS[1..].iter().any(|(open, _)| word.eq_ignore_ascii_case(&open[1..])) && !name.contains("ld+json")
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
        ] {
            assert_eq!(without_code(html), kept, "{html}");
        }
    }

    #[test]
    fn a_page_of_openings_takes_no_more_than_a_moment() {
        for opening in ["<script>", "<!--", "<!-- --", "<style ", "<script></", "<script ld+json "] {
            let html = opening.repeat(1_000_000 / opening.len());
            let (tell, done) = std::sync::mpsc::channel();
            std::thread::spawn(move || tell.send(without_code(&html) == html));
            assert_eq!(done.recv_timeout(std::time::Duration::from_secs(20)), Ok(true), "{opening}");
        }
    }
}
