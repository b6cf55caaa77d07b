//! Pages that are an empty frame until their scripts have run. Pure; a wrong guess costs a visit of the browser.

/// Less visible text than this is no page yet.
const TEXT_MIN: usize = 250;

const FRAMES: [&str; 8] =
    ["id=\"root\"", "id=\"app\"", "id=\"__next\"", "id=\"__nuxt\"", "id=root", "id=app", "<app-root", "data-reactroot"];

/// Whether HTML holds little text but scripts that would make some.
#[must_use]
pub fn needs_scripts(html: &str) -> bool {
    if html.len() > 2_000_000 || !html.contains("<script") {
        return false;
    }
    let text = visible(html);
    let low = html.to_ascii_lowercase();
    let asks = low.contains("<noscript") && (low.contains("enable javascript") || low.contains("requires javascript"));
    text < TEXT_MIN && (asks || FRAMES.iter().any(|frame| low.contains(frame)))
}

fn visible(html: &str) -> usize {
    let document = dom_query::Document::from(html);
    let blocks = crate::extract::blocks::Blocks::of(&document);
    blocks.blocks.iter().map(|block| block.text.chars().count()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_empty_frame_needs_scripts() {
        let frame = "<html><body><div id=\"root\"></div><noscript>Please enable JavaScript</noscript><script src=a.js></script></body></html>";
        let page = format!(
            "<html><body><div id=\"root\"><p>{}</p></div><script>1</script></body></html>",
            "Words of a page. ".repeat(30)
        );
        assert!(needs_scripts(frame));
        assert!(!needs_scripts(&page));
        assert!(!needs_scripts("<p>short</p><script>1</script>"));
        assert!(!needs_scripts("<div id=root></div>"));
    }
}
