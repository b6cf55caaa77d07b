//! What a vendor's refusal means, from its status, its headers and its words.

use std::time::Duration;

use matsu_core::clock::Timestamp;
use matsu_core::ports::provider::ProviderFault;
use serde_json::Value;

/// A fault with its words; the provider's name comes later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub kind: ProviderFault,
    pub message: String,
}

/// Words of a refusal that are worth showing.
const MESSAGE_CHARS_MAX: usize = 600;

impl Fault {
    pub fn new(kind: ProviderFault, message: impl Into<String>) -> Self {
        let message: String = message.into();
        Self { kind, message: message.chars().take(MESSAGE_CHARS_MAX).collect() }
    }

    pub fn protocol(message: impl Into<String>) -> Self {
        Self::new(ProviderFault::Protocol, message)
    }

    pub fn truncated() -> Self {
        Self::new(ProviderFault::Truncated, "the answer was cut off before its end")
    }
}

/// The errors by which vendors report that a history is too long.
const OVERFLOW: &[&str] = &[
    "context_length_exceeded",
    "maximum context length",
    "context window",
    "prompt is too long",
    "input is too long",
    "exceeds the maximum number of tokens",
    "input token count",
    "exceed_context_size",
    "exceeds the available context size",
    "too many tokens",
];

/// A refusal before the stream.
#[must_use]
pub fn of_status(status: u16, retry_after: Option<&str>, body: &str, now: Timestamp) -> Fault {
    let words = words_of(body);
    let after = retry_after.and_then(|text| pause(text, now));
    let message = match &words {
        Some(words) => format!("refused with status {status}: {words}"),
        None => format!("refused with status {status}"),
    };
    let kind = match status {
        401 | 403 => ProviderFault::Auth,
        429 | 529 => ProviderFault::RateLimited { after },
        408 | 500..=599 => ProviderFault::Server { after },
        300..=399 => ProviderFault::Protocol,
        _ if is_overflow(body) => ProviderFault::ContextOverflow,
        _ => ProviderFault::BadRequest,
    };
    Fault::new(kind, message)
}

/// An error that came inside a stream which had begun well. `null` is none.
#[must_use]
pub fn in_stream(error: &Value) -> Option<Fault> {
    if error.is_null() {
        return None;
    }
    let word = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default().to_lowercase();
    let (kind, code, status) = (word("type"), word("code"), word("status"));
    let number = error.get("code").and_then(Value::as_u64).unwrap_or(0);
    let text = error.get("message").and_then(Value::as_str).or_else(|| error.as_str());
    let message = text.map_or_else(|| error.to_string(), str::to_owned);
    let says = |word: &str| kind.contains(word) || code.contains(word) || status.contains(word);
    let fault = if is_overflow(&message) || says("context_length") {
        ProviderFault::ContextOverflow
    } else if says("rate_limit") || says("overloaded") || says("resource_exhausted") || number == 429 {
        ProviderFault::RateLimited { after: None }
    } else if says("authentication") || says("permission") || says("unauthenticated") || [401, 403].contains(&number) {
        ProviderFault::Auth
    } else if says("invalid") || number == 400 {
        ProviderFault::BadRequest
    } else {
        ProviderFault::Server { after: None }
    };
    Some(Fault::new(fault, message))
}

fn is_overflow(text: &str) -> bool {
    let text = text.to_lowercase();
    OVERFLOW.iter().any(|words| text.contains(words))
}

/// The vendor's own sentence; nothing of a page that a proxy made.
fn words_of(body: &str) -> Option<String> {
    let value: Value = serde_json::from_str(body).ok()?;
    // Gemini's errors come as a list of one when a stream was asked for.
    let value = value.get(0).unwrap_or(&value);
    let error = value.get("error").unwrap_or(value);
    let text = error.get("message").and_then(Value::as_str).or_else(|| error.as_str());
    text.map(str::to_owned)
}

/// `Retry-After`: seconds, or a date.
fn pause(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let at = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    Some(Timestamp::from_millis(at.as_millisecond()).since(now))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_794_704_523_000);

    #[test]
    fn each_refusal_is_sorted_by_what_to_do_next() {
        let openai = r#"{"error":{"message":"This model's maximum context length is 128000 tokens","code":"context_length_exceeded"}}"#;
        let anthropic =
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 2 > 1"}}"#;
        let gemini = r#"[{"error":{"code":400,"message":"The input token count (9) exceeds the maximum number of tokens allowed (8).","status":"INVALID_ARGUMENT"}}]"#;
        let ollama = r#"{"error":"input is too long: exceeds the available context size"}"#;
        let cases = [
            (401, "{}", ProviderFault::Auth),
            (403, "{}", ProviderFault::Auth),
            (400, openai, ProviderFault::ContextOverflow),
            (400, anthropic, ProviderFault::ContextOverflow),
            (400, gemini, ProviderFault::ContextOverflow),
            (400, ollama, ProviderFault::ContextOverflow),
            (400, r#"{"error":{"message":"bad tool"}}"#, ProviderFault::BadRequest),
            (404, "{}", ProviderFault::BadRequest),
            (302, "", ProviderFault::Protocol),
            (502, "<html>Bad Gateway</html>", ProviderFault::Server { after: None }),
            (529, "{}", ProviderFault::RateLimited { after: None }),
        ];
        for (status, body, kind) in cases {
            assert_eq!(of_status(status, None, body, NOW).kind, kind, "{status} {body}");
        }
    }

    #[test]
    fn a_pause_is_read_in_seconds_and_as_a_date() {
        let after = |text| of_status(429, Some(text), "{}", NOW).kind.retry_after();
        assert_eq!(after("7"), Some(Duration::from_secs(7)));
        assert_eq!(after("0.5"), Some(Duration::from_millis(500)));
        assert_eq!(after("Sun, 15 Nov 2026 01:02:33 GMT"), Some(Duration::from_secs(30)));
        assert_eq!(after("Sun, 15 Nov 2026 01:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(after("soon"), None);
        let busy = of_status(503, Some("3"), "{}", NOW).kind;
        assert_eq!(busy, ProviderFault::Server { after: Some(Duration::from_secs(3)) });
    }

    #[test]
    fn a_page_of_a_proxy_is_not_repeated_and_a_sentence_of_the_vendor_is() {
        assert_eq!(of_status(502, None, "<html>secret</html>", NOW).message, "refused with status 502");
        let said = of_status(400, None, r#"{"error":{"message":"tools[0] is odd"}}"#, NOW).message;
        assert_eq!(said, "refused with status 400: tools[0] is odd");
    }

    #[test]
    fn errors_inside_a_stream_are_sorted_too() {
        assert_eq!(in_stream(&Value::Null), None);
        let kind = |error: Value| in_stream(&error).unwrap().kind;
        assert_eq!(
            kind(json!({"type": "overloaded_error", "message": "x"})),
            ProviderFault::RateLimited { after: None }
        );
        assert_eq!(kind(json!({"code": 429, "message": "x"})), ProviderFault::RateLimited { after: None });
        assert_eq!(kind(json!("out of memory")), ProviderFault::Server { after: None });
        assert_eq!(kind(json!({"code": "context_length_exceeded"})), ProviderFault::ContextOverflow);
        assert_eq!(kind(json!({"type": "invalid_request_error"})), ProviderFault::BadRequest);
    }
}
