//! HTML, with what decides whether a page is a wall and whether it needs a browser.

use matsu_adapters::fetch::walls::{PageReply, find_wall};

use super::documents::check;

const MEDIA_TYPE: &str = "text/html";

pub fn run(data: &[u8]) {
    check(matsu_reader::read(data, MEDIA_TYPE));
    let visible = matsu_reader::visible_chars(data, MEDIA_TYPE);
    assert!(visible.is_ok_and(|visible| visible <= 4 * data.len() + 4), "more text than there are bytes");
    let body = matsu_reader::decode(data, Some(MEDIA_TYPE));
    for status in [200, 403] {
        let _ = find_wall(&PageReply { status, headers: &[], body: &body, final_url: "https://example.org/login" });
    }
}
