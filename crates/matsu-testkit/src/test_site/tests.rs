//! The site answers as its table says.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::*;

fn get(site: &TestSite, number: u8, path: &str, extra: &str) -> (u16, String) {
    let host = address(number, site.port());
    let mut stream = TcpStream::connect(host).expect("a connection");
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{extra}\r\n").expect("sent");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an answer");
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let status = text.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    (status, text)
}

#[test]
fn sites_contradict_each_other_and_engines_know_them() {
    let site = TestSite::start().expect("a site");
    let (_, yes) = get(&site, 0, "/en/long-polling/2", "");
    let (_, no) = get(&site, 1, "/en/long-polling/2", "");
    assert!(yes.contains("reduces token use") && no.contains("does not reduce token use"));
    let (status, found) = get(&site, 0, "/searxng/search?q=token+use&format=json", "");
    assert_eq!(status, 200);
    assert!(found.contains("/en/long-polling/0") && found.contains("127.0.0.2"));
    let (_, works) = get(&site, 0, "/openalex/works?search=green+tea", "");
    assert!(works.contains("10.5555/matsu.1"));
    site.set_mood("searxng", Mood::Broken);
    assert_eq!(get(&site, 0, "/searxng/search?q=x&format=json", "").0, 500);
}

#[test]
fn login_pages_open_with_the_key_alone() {
    let site = TestSite::start().expect("a site");
    assert_eq!(get(&site, 0, "/members/0", "").0, 401);
    assert_eq!(get(&site, 0, "/members/1", "").0, 302);
    let (status, text) = get(&site, 0, "/members/0", &format!("cookie: a=b; {KEY}\r\n"));
    assert!(status == 200 && text.contains("Only members read this"));
    for (path, expected) in [
        ("/status/403", 403),
        ("/status/429", 429),
        ("/challenge/cloudflare", 403),
        ("/redirect/metadata", 302),
        ("/pdf/1.pdf", 200),
        ("/nothing", 404),
    ] {
        assert_eq!(get(&site, 2, path, "").0, expected, "{path}");
    }
    assert_eq!(site.visits_to("/members").len(), 3);
    assert_eq!(site.visits().last().map(|visit| visit.site), Some(2));
}
