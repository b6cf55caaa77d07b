//! Whether a delivery comes from who knows the secret. All comparisons take the same time for every wrong value.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use matsu_core::clock::Timestamp;
use matsu_core::limits::WEBHOOK_CLOCK_SKEW;
use matsu_core::secret::Token;
use matsu_core::webhook::WebhookKind;

/// Bytes of a key of Standard Webhooks at least.
const KEY_BYTES_MIN: usize = 16;
/// An id of a delivery, or the name of an event, with more bytes is refused.
const WORD_BYTES_MAX: usize = 200;
/// Signatures that one delivery may carry, while its sender changes keys.
const SIGNATURES_MAX: usize = 10;

/// A request: its headers, by name in lower case, and its body.
pub struct Incoming<'a> {
    pub header: &'a dyn Fn(&str) -> Option<String>,
    pub body: &'a [u8],
}

/// What a delivery with the right signature says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    pub key: String,
    pub digest: Option<String>,
    pub event: Option<String>,
    pub is_ping: bool,
}

/// Why a delivery is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub String);

pub fn verify(kind: WebhookKind, secret: &str, incoming: &Incoming<'_>, now: Timestamp) -> Result<Verified, Refused> {
    match kind {
        WebhookKind::Standard => standard(secret, incoming, now),
        WebhookKind::Github => github(secret, incoming),
        WebhookKind::Gitlab => gitlab(secret, incoming),
    }
}

fn standard(secret: &str, incoming: &Incoming<'_>, now: Timestamp) -> Result<Verified, Refused> {
    let id = needed(incoming, "webhook-id")?;
    let time = needed(incoming, "webhook-timestamp")?;
    let signatures = needed(incoming, "webhook-signature")?;
    let key = standard_key(secret).ok_or_else(wrong)?;
    let signed = [id.as_bytes(), b".", time.as_bytes(), b".", incoming.body];
    let is_right = signatures
        .split_whitespace()
        .take(SIGNATURES_MAX)
        .filter_map(|signature| BASE64_STANDARD.decode(signature.strip_prefix("v1,")?).ok())
        .any(|signature| is_mac(&key, &signed, &signature));
    if !is_right {
        return Err(wrong());
    }
    // After the signature: only who knows the secret learns about the clock.
    let seconds: i64 = time.parse().map_err(|_| Refused("webhook-timestamp is not a number of seconds".to_owned()))?;
    let signed_at = Timestamp::from_millis(seconds.saturating_mul(1_000));
    if now.since(signed_at).max(signed_at.since(now)) > WEBHOOK_CLOCK_SKEW {
        return Err(Refused(format!(
            "webhook-timestamp {seconds} differs by more than {} s from this clock; send a new delivery or correct the \
             clock",
            WEBHOOK_CLOCK_SKEW.as_secs()
        )));
    }
    Ok(Verified { key: bounded("webhook-id", id)?, digest: None, event: None, is_ping: false })
}

fn github(secret: &str, incoming: &Incoming<'_>) -> Result<Verified, Refused> {
    let signature = needed(incoming, "x-hub-signature-256")?;
    let signature = signature.strip_prefix("sha256=").and_then(unhex).ok_or_else(wrong)?;
    if !is_mac(secret.as_bytes(), &[incoming.body], &signature) {
        return Err(wrong());
    }
    let event = bounded("x-github-event", needed(incoming, "x-github-event")?)?;
    let key = bounded("x-github-delivery", needed(incoming, "x-github-delivery")?)?;
    let is_ping = event == "ping";
    // The signature covers the body alone: under another id it would pass again.
    Ok(Verified { key, digest: Some(digest(incoming.body)), event: Some(event), is_ping })
}

fn gitlab(secret: &str, incoming: &Incoming<'_>) -> Result<Verified, Refused> {
    let token = needed(incoming, "x-gitlab-token")?;
    if !Token::new(secret).matches(&token) {
        return Err(wrong());
    }
    let event = (incoming.header)("x-gitlab-event").map(|event| bounded("x-gitlab-event", event)).transpose()?;
    let digest = digest(incoming.body);
    // Older versions have no key for repetitions.
    let key = match (incoming.header)("idempotency-key") {
        Some(key) => bounded("idempotency-key", key)?,
        None => format!("body-{digest}"),
    };
    Ok(Verified { key, digest: Some(digest), event, is_ping: false })
}

/// The bytes of a secret of Standard Webhooks.
pub fn standard_key(secret: &str) -> Option<Vec<u8>> {
    let key = BASE64_STANDARD.decode(secret.strip_prefix("whsec_").unwrap_or(secret)).ok()?;
    (key.len() >= KEY_BYTES_MIN).then_some(key)
}

fn needed(incoming: &Incoming<'_>, name: &str) -> Result<String, Refused> {
    (incoming.header)(name).ok_or_else(|| Refused(format!("the header {name} is missing, or is not text")))
}

fn bounded(name: &str, value: String) -> Result<String, Refused> {
    if (1..=WORD_BYTES_MAX).contains(&value.len()) {
        return Ok(value);
    }
    Err(Refused(format!("the header {name} must have 1 to {WORD_BYTES_MAX} bytes")))
}

fn wrong() -> Refused {
    Refused("the signature does not match this webhook's secret".to_owned())
}

fn is_mac(key: &[u8], parts: &[&[u8]], signature: &[u8]) -> bool {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return false };
    parts.iter().for_each(|part| mac.update(part));
    // It compares in constant time.
    mac.verify_slice(signature).is_ok()
}

fn digest(body: &[u8]) -> String {
    use sha2::Digest;
    Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_614_265_330;
    const STANDARD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn check(kind: WebhookKind, secret: &str, headers: &[(&str, &str)], body: &str) -> Result<Verified, Refused> {
        let header =
            |name: &str| headers.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned());
        let incoming = Incoming { header: &header, body: body.as_bytes() };
        verify(kind, secret, &incoming, Timestamp::from_millis(NOW * 1_000))
    }

    /// The example of the specification.
    fn standard<'a>(time: &'a str, signature: &'a str) -> [(&'a str, &'a str); 3] {
        let id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
        [("webhook-id", id), ("webhook-timestamp", time), ("webhook-signature", signature)]
    }

    #[test]
    fn the_example_of_standard_webhooks_is_right_and_nothing_near_it() {
        let (body, time) = (r#"{"test": 2432232314}"#, "1614265330");
        let right = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        let check = |time, signature, body| check(WebhookKind::Standard, STANDARD, &standard(time, signature), body);
        assert_eq!(check(time, right, body).unwrap().key, "msg_p5jXN8AQM9LWM0D4loKWxJek");
        let two = format!("v1,AAAA v1a,xx {right}");
        assert!(check(time, &two, body).is_ok(), "while a sender changes keys it sends several");
        for (time, signature, body) in [
            (time, right, r#"{"test": 2432232315}"#),
            ("1614265331", right, body),
            (time, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OF=", body),
            (time, "v1,", body),
            (time, "", body),
            (time, &right[3..], body),
        ] {
            assert_eq!(check(time, signature, body), Err(wrong()), "{time} {signature} {body}");
        }
    }

    #[test]
    fn a_signed_time_far_from_the_clock_is_refused() {
        let key = standard_key(STANDARD).unwrap();
        for (offset, is_taken) in [(0, true), (-300, true), (300, true), (-301, false), (301, false), (-86_400, false)]
        {
            let time = (NOW + offset).to_string();
            let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
            mac.update(format!("msg_p5jXN8AQM9LWM0D4loKWxJek.{time}.{{}}").as_bytes());
            let signature = format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()));
            let found = check(WebhookKind::Standard, STANDARD, &standard(&time, &signature), "{}");
            assert_eq!(found.is_ok(), is_taken, "{offset}: {found:?}");
        }
    }

    /// The example of GitHub's documentation.
    #[test]
    fn the_example_of_github_is_right_and_nothing_near_it() {
        let right = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        let headers =
            |signature| [("x-hub-signature-256", signature), ("x-github-event", "issues"), ("x-github-delivery", "d1")];
        let secret = "It's a Secret to Everybody";
        let check = |signature, body| check(WebhookKind::Github, secret, &headers(signature), body);
        let found = check(right, "Hello, World!").unwrap();
        assert_eq!((found.key.as_str(), found.event.as_deref(), found.is_ping), ("d1", Some("issues"), false));
        assert!(found.digest.is_some(), "the id of the delivery is not signed");
        for (signature, body) in [
            (right, "Hello, World"),
            (&right[7..], "Hello, World!"),
            (&right[..70], "Hello, World!"),
            ("sha256=", "Hello, World!"),
            ("sha256=zz", "Hello, World!"),
            ("sha256=\u{e9}\u{e9}", "Hello, World!"),
        ] {
            assert_eq!(check(signature, body), Err(wrong()), "{signature}");
        }
    }

    #[test]
    fn gitlab_sends_the_secret_and_repetitions_have_one_key() {
        let check = |headers: &[(&str, &str)]| check(WebhookKind::Gitlab, "a long enough secret", headers, "{}");
        let token = ("x-gitlab-token", "a long enough secret");
        assert_eq!(check(&[token, ("idempotency-key", "k1")]).unwrap().key, "k1");
        assert_eq!(check(&[token]), check(&[token]), "without a key the body is the key");
        for headers in [&[][..], &[("x-gitlab-token", "")], &[("x-gitlab-token", "a long enough secreT")]] {
            assert!(check(headers).is_err(), "{headers:?}");
        }
        assert!(check(&[token, ("idempotency-key", &"k".repeat(201))]).is_err(), "a key is short");
    }
}
