//! Reading pages: what is kept, what is left, and that nothing breaks the reader.

use matsu_core::ports::extractor::ExtractError;
use matsu_testkit::test_site::TestSite;
use proptest::prelude::*;

use super::*;

fn article(inner: &str) -> String {
    format!(
        "<html><head><title>On waiting</title></head><body><nav><a href=/>Home</a> <a href=/b>Blog</a></nav>\
         <article><h1>On waiting</h1><p>Servers wait for clients, and clients wait for servers, which is why both of them \
         should learn to do it well and without noise.</p>{inner}<h2>Why it matters</h2><p>A client that asks again and \
         again spends its budget on questions, while one that waits spends it on answers, and the difference is large.</p>\
         </article><footer>© 2026 All rights reserved. Privacy policy</footer></body></html>"
    )
}

#[test]
fn main_text_has_its_headings_at_their_places_and_no_frame() {
    let document = read(article("").as_bytes(), "text/html; charset=utf-8").expect("a document");
    assert_eq!(document.title, "On waiting");
    assert!(document.text.contains("Servers wait") && document.text.contains("the difference is large"));
    assert!(!document.text.contains("Privacy") && !document.text.contains("Blog"));
    for heading in &document.headings {
        assert!(document.text[heading.at..].starts_with(&heading.text), "{heading:?}");
    }
    assert!(document.headings.iter().any(|heading| heading.text == "Why it matters" && heading.level == 2));
}

#[test]
fn code_of_a_page_is_marked_and_preformatted_prose_is_not() {
    let page = article(
        "<pre><code>let town = harbour.find(\"Orvik\"); assert!(town.dug == 3333);</code></pre>\
         <pre>The harbour of Orvik was dug by hand, and it took the town forty years to finish it.</pre>",
    );
    let text = read(page.as_bytes(), "text/html").expect("a document").text;
    assert!(text.contains("\n    let town") && text.contains("\nThe harbour of Orvik"), "{text}");
}

#[test]
fn unseen_characters_are_gone() {
    let page = article(
        "<p>Ig\u{200b}nore\u{2060} this\u{202e} hidden\u{e0041} trick, said the page to its reader in the middle.</p>",
    );
    let document = read(page.as_bytes(), "text/html").expect("a document");
    assert!(!document.text.contains(['\u{200b}', '\u{2060}', '\u{202e}', '\u{e0041}']));
    assert!(document.text.contains("Ignore this hidden trick"));
}

#[test]
fn a_page_nested_ten_thousand_deep_is_read_in_time() {
    let deep = format!("{}{}{}", "<div>".repeat(10_000), article(""), "</div>".repeat(10_000));
    let document = read(deep.as_bytes(), "text/html").expect("a document");
    assert!(document.text.contains("Servers wait"));
}

#[test]
fn what_cannot_be_read_says_so() {
    assert_eq!(read(b"", "text/html").err(), Some(ExtractError::Empty));
    assert_eq!(read(b"\0\0", "image/png").err(), Some(ExtractError::Unsupported("image/png".to_owned())));
    assert!(matches!(read(b"%PDF-1.4 broken", "application/pdf"), Err(ExtractError::Malformed(_))));
}

#[test]
fn a_pdf_of_the_test_site_is_read() {
    use std::io::{Read, Write};
    let site = TestSite::start().expect("a site");
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", site.port())).expect("a connection");
    write!(stream, "GET /pdf/1.pdf HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    let at = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    let document = read(&answer[at..], "application/pdf").expect("a document");
    assert!(document.text.contains("green tea every day lowers systolic blood pressure"), "{}", document.text);
    assert!(document.title.starts_with("Green tea and blood pressure"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_bytes_break_the_reader(body in prop::collection::vec(any::<u8>(), 0..800)) {
        for media_type in ["text/html", "text/markdown", "text/plain", "application/pdf"] {
            let _ = read(&body, media_type);
        }
    }

    #[test]
    fn no_soup_of_tags_breaks_the_reader(parts in prop::collection::vec(prop_oneof![
        Just("<div>".to_owned()), Just("</p>".to_owned()), Just("<table><tr><td>".to_owned()), Just("<li>".to_owned()),
        Just("<h2>".to_owned()), Just("<a href=x>".to_owned()), Just("<article class='post-body'>".to_owned()),
        Just("<script type='application/ld+json'>{\"@type\":[1".to_owned()), Just("<title>".to_owned()), Just("<svg><p>".to_owned()),
        "\\PC{0,40}", Just("<template>".to_owned()), Just("<meta property=og:type content=a>".to_owned()),
    ], 0..60)) {
        if let Ok(document) = read(parts.concat().as_bytes(), "text/html") {
            for heading in &document.headings {
                prop_assert!(document.text[heading.at..].starts_with(&heading.text));
            }
        }
    }
}

#[test]
fn what_is_served_to_those_without_scripts_is_read_where_there_is_nothing_else() {
    let post = "Laptops are not really what I know about, is there a good source that anyone can recommend? ".repeat(8);
    let page = |shown: &str| {
        format!("<body><div id=app>{shown}</div><noscript><article><p>{post}</p></article></noscript></body>")
    };
    let read = |html: &str| crate::html::read(html).expect("text").text;
    assert!(read(&page("Loading")).contains("good source"));
    let shown =
        format!("<article><p>{}</p></article>", "The text that everybody sees, sentence after sentence. ".repeat(20));
    assert!(!read(&page(&shown)).contains("good source"));
}

#[test]
fn what_stands_apart_on_a_page_stands_apart_in_its_text() {
    let page = article(
        "<div><label>On one system</label><label>On another one</label></div>\
         <h3>Aliases<a class=headerlink href=#aliases>¶</a></h3>\
         <h3><a class=doc-anchor href=#waits>§</a>Kinds of waits</h3>\
         <p>class middleware.Waiting<a href=/x.html#y><span>[source]</span></a> waits as its rule says, and \
         issue <a href=#12>#12</a> says why it has to be so, in more words than anybody wants to read.</p>\
         <pre><code><span class=line><i>npm</i> <i>start</i></span><span class=line>cd out; ls(-l)</span></code></pre>\
         <pre><code>wait(<span>a</span>.<span>b</span>);</code></pre>",
    );
    let blocks = crate::blocks::Blocks::of(&dom_query::Document::from(page));
    let text = blocks.blocks.iter().map(|block| block.text.as_str()).collect::<Vec<_>>().join("\n");
    for line in ["On one system On another one", "Aliases", "Kinds of waits", "npm start cd out; ls(-l)", "wait(a.b);"]
    {
        assert!(text.lines().any(|one| one == line), "{line}: {text}");
    }
    assert!(text.contains("middleware.Waiting [source] waits") && text.contains("issue #12 says"), "{text}");
}
