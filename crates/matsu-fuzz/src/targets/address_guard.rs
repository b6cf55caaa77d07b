//! Addresses in every spelling: none that the guard lets through leads to this machine or its network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use async_trait::async_trait;
use matsu_adapters::http::guard::{AddressGuard, Exception, is_public};
use matsu_adapters::http::names::{GuardedNames, Names};
use url::{Host, Url};

use crate::input::{at_once, choice, first_line};

pub fn run(data: &[u8]) {
    let (which, data) = choice(data);
    match which % 3 {
        0 => written(data),
        1 => spelled(data),
        _ => excepted(data),
    }
}

/// Any text that is an address.
fn written(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(url) = Url::parse(text) else { return };
    if AddressGuard::default().check_url(&url).is_err() {
        return;
    }
    assert!(matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none());
    match url.host() {
        Some(Host::Ipv4(ip)) => assert!(!is_inside_v4(ip), "{url}"),
        Some(Host::Ipv6(ip)) => assert!(!is_inside_v6(ip), "{url}"),
        // A resolver would read such a name as an address, without asking a name server.
        Some(Host::Domain(name)) => {
            assert_eq!(numeric(name), None, "{url}");
            resolved(name);
        }
        None => panic!("no host in {url}"),
    }
}

/// Four bytes of an address, written the ways that libraries understand.
fn spelled(data: &[u8]) {
    let Some((bytes, rest)) = data.split_first_chunk::<4>() else { return };
    let (ip, [a, b, c, d]) = (Ipv4Addr::from(*bytes), *bytes);
    let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    let number = u32::from(ip);
    let tail = String::from_utf8_lossy(rest);
    let spellings = [
        format!("{ip}"),
        format!("{ip}."),
        format!("{number}"),
        format!("{number:#x}"),
        format!("0{number:o}"),
        format!("{a:#x}.{b:#o}.{c}.{d}").replace("0o", "0"),
        format!("{a}.{}", number & 0x00ff_ffff),
        format!("{a}.{b}.{low}"),
        format!("[::ffff:{ip}]"),
        format!("[::{ip}]"),
        format!("[0:0:0:0:0:ffff:{high:x}:{low:x}]"),
        format!("[64:ff9b::{ip}]"),
        format!("[2002:{high:x}:{low:x}::{low:x}]"),
    ];
    for spelling in spellings {
        let Ok(url) = Url::parse(&format!("http://{spelling}/{tail}")) else { continue };
        let passes = AddressGuard::default().check_url(&url).is_ok();
        assert!(!passes || !is_inside_v4(ip), "{url} leads to {ip}");
    }
    assert!(!is_public(IpAddr::V4(ip)) || !is_inside_v4(ip), "{ip}");
    if let Some((bytes, _)) = data.split_first_chunk::<16>() {
        let ip = Ipv6Addr::from(*bytes);
        assert!(!is_public(IpAddr::V6(ip)) || !is_inside_v6(ip), "{ip}");
        assert_eq!(is_public(IpAddr::V6(ip)), AddressGuard::default().check_resolved("a", &[ip.into()]).is_ok());
    }
}

/// The first line is an exception that the operator wrote; it holds for that host alone.
fn excepted(data: &[u8]) {
    let (exception, text) = first_line(data);
    let Some(exception) = Exception::parse(&exception) else { return };
    let Ok(url) = Url::parse(&String::from_utf8_lossy(text)) else { return };
    let guard = AddressGuard::new(vec![exception.clone()]);
    let plain = AddressGuard::default().check_url(&url).is_ok();
    if guard.check_url(&url).is_ok() && !plain {
        let host = url.host_str().unwrap_or_default();
        let same = Exception::parse(host);
        assert!(format!("{exception:?}").contains(&format!("{host:?}")) && same.is_some(), "{url} by {exception:?}");
    }
}

/// Names that lead to this machine.
struct Inward;

#[async_trait]
impl Names for Inward {
    async fn look_up(&self, _: &str) -> std::io::Result<Vec<IpAddr>> {
        Ok(vec![Ipv4Addr::new(93, 184, 216, 34).into(), Ipv4Addr::LOCALHOST.into()])
    }
}

fn resolved(name: &str) {
    let names = GuardedNames::new(Arc::new(Inward), Arc::new(AddressGuard::default()));
    assert!(at_once(names.addresses(name)).is_err(), "{name} leads inward");
}

/// By the standard library, not by the guard's own table.
fn is_inside_v4(ip: Ipv4Addr) -> bool {
    let [a, b, ..] = ip.octets();
    ip.is_private()
        || ip.is_loopback()
        || ip.is_link_local()
        || ip.is_unspecified()
        || ip.is_broadcast()
        || ip.is_multicast()
        || ip.is_documentation()
        || (a == 100 && b & 0xc0 == 64)
        || a == 0
        || a >= 240
}

fn is_inside_v6(ip: Ipv6Addr) -> bool {
    let segments = ip.segments();
    let inner = match segments {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some((high, low)),
        [0x2002, high, low, ..] => Some((high, low)),
        _ => None,
    };
    let inner = inner.map(|(high, low)| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    ip.is_loopback()
        || ip.is_unspecified()
        || ip.is_multicast()
        || ip.is_unique_local()
        || ip.is_unicast_link_local()
        || segments[0] & 0xffc0 == 0xfec0
        || inner.is_some_and(is_inside_v4)
}

/// A name that the C library reads as an IPv4 address: one to four numbers, each decimal, octal or hexadecimal.
fn numeric(name: &str) -> Option<u32> {
    let parts: Vec<&str> = name.strip_suffix('.').unwrap_or(name).split('.').collect();
    let numbers = parts.iter().map(|part| {
        let lower = part.to_ascii_lowercase();
        // Rust would also read a sign; the C library does not.
        if !lower.starts_with(|first: char| first.is_ascii_digit()) {
            return None;
        }
        match lower.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None if lower.len() > 1 && lower.starts_with('0') => u32::from_str_radix(&lower, 8).ok(),
            None => lower.parse().ok(),
        }
    });
    let numbers: Option<Vec<u32>> = numbers.collect();
    numbers.filter(|numbers| (1..=4).contains(&numbers.len())).map(|numbers| numbers[0])
}
