//! Cookies that a person pasted: the first line is the host they are for.

use matsu_adapters::fetch::cookies::{Cookie, header_for, parse};
use url::Url;

use crate::input::first_line;

pub fn run(data: &[u8]) {
    let (host, text) = first_line(data);
    let Ok(text) = std::str::from_utf8(text) else { return };
    let Ok(cookies) = parse(&host, text) else { return };
    assert!(!cookies.is_empty(), "no cookie is an error");
    let hosts = cookies.iter().map(|cookie| cookie.domain.clone()).take(4);
    for name in hosts.chain(["example.org".to_owned(), "sub.example.org".to_owned()]) {
        let Ok(url) = Url::parse(&format!("https://{name}/a/b")) else { continue };
        let Some(header) = header_for(&cookies, &url, 1_000) else { continue };
        assert!(header.bytes().all(|byte| (0x20..0x7f).contains(&byte)), "a header that no request may carry");
        let host = url.host_str().unwrap_or_default();
        let may_go = cookies.iter().any(|cookie| {
            host == cookie.domain || (cookie.with_subdomains && host.ends_with(&format!(".{}", cookie.domain)))
        });
        assert!(may_go, "cookies went to {host}");
    }
    let without_values: Vec<_> =
        cookies.iter().map(|cookie| Cookie { value: String::new(), ..cookie.clone() }).collect();
    assert_eq!(format!("{cookies:?}"), format!("{without_values:?}"), "a value is shown");
}
