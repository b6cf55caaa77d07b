//! robots.txt: the first line is a path, the rest is the file.

use std::time::Duration;

use matsu_adapters::fetch::robots::Wishes;
use url::Url;

use crate::input::first_line;

pub fn run(data: &[u8]) {
    let (path, file) = first_line(data);
    let Ok(url) = Url::parse(&format!("https://example.org/{path}")) else { return };
    let wishes = Wishes::parse("matsu", file);
    let is_allowed = wishes.allow(url.as_str());
    assert!(wishes.delay().is_none_or(|delay| delay <= Duration::from_secs(30)), "a delay without a bound");
    let words = String::from_utf8_lossy(file).to_ascii_lowercase();
    // Every spelling of `disallow` that parsers accept begins so.
    assert!(is_allowed || words.contains("di"), "a file that forbids nothing forbids {url}");
}
