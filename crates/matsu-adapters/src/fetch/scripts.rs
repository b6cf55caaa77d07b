//! Pages that are an empty frame until their scripts have run. A wrong guess costs a visit of the browser.

use crate::reading::{DocumentReader, visible_chars};

/// Less visible text than this is no page yet.
const TEXT_MIN: usize = 250;

const FRAMES: [&str; 8] =
    ["id=\"root\"", "id=\"app\"", "id=\"__next\"", "id=\"__nuxt\"", "id=root", "id=app", "<app-root", "data-reactroot"];

/// Whether HTML holds little text but scripts that would make some.
pub async fn needs_scripts(reader: &dyn DocumentReader, html: &str) -> bool {
    if !may_need_scripts(html) {
        return false;
    }
    // A page that cannot be read is not read better by a browser; the reason is reported when it is read in full.
    let visible = visible_chars(reader, html.as_bytes().to_vec(), "text/html; charset=utf-8").await;
    visible.is_ok_and(|chars| chars < TEXT_MIN)
}

/// By its signs alone, without parsing it.
fn may_need_scripts(html: &str) -> bool {
    if html.len() > 2_000_000 || !html.contains("<script") {
        return false;
    }
    let low = html.to_ascii_lowercase();
    let asks = low.contains("<noscript") && (low.contains("enable javascript") || low.contains("requires javascript"));
    asks || FRAMES.iter().any(|frame| low.contains(frame))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::in_process::InProcess;

    #[tokio::test]
    async fn only_an_empty_frame_needs_scripts() {
        let frame = "<html><body><div id=\"root\"></div><noscript>Please enable JavaScript</noscript><script src=a.js></script></body></html>";
        let page = format!(
            "<html><body><div id=\"root\"><p>{}</p></div><script>1</script></body></html>",
            "Words of a page. ".repeat(30)
        );
        assert!(needs_scripts(&InProcess, frame).await);
        assert!(!needs_scripts(&InProcess, &page).await);
        assert!(!needs_scripts(&InProcess, "<p>short</p><script>1</script>").await);
        assert!(!needs_scripts(&InProcess, "<div id=root></div>").await);
    }
}
