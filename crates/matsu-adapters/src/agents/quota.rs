//! Quota messages: whether a vendor says when there is more to be had. Pure.

use matsu_core::clock::Timestamp;

use super::definition::QuotaPart;

/// No vendor's window is longer; a later time is a misreading.
const FURTHEST_MS: i64 = 8 * 24 * 3600 * 1000;

/// When to try again, if this is a quota message that says so.
#[must_use]
pub fn until(part: Option<&QuotaPart>, message: &str, now: Timestamp) -> Option<Timestamp> {
    let lower = message.to_lowercase();
    if !part?.patterns.iter().any(|pattern| lower.contains(&pattern.to_lowercase())) {
        return None;
    }
    let at = epoch(message)
        .or_else(|| date(message))
        .or_else(|| span(&lower).and_then(|ms| ms.checked_add(now.as_millis())))?;
    let ahead = at.checked_sub(now.as_millis())?;
    (ahead > 0 && ahead <= FURTHEST_MS).then(|| Timestamp::from_millis(at))
}

/// Seconds or milliseconds since 1970, as in `limit reached|1760000000`.
fn epoch(message: &str) -> Option<i64> {
    let numbers = message.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    numbers
        .filter_map(|digits| match digits.len() {
            10 => digits.parse::<i64>().ok().map(|seconds| seconds * 1_000),
            13 => digits.parse().ok(),
            _ => None,
        })
        .next()
}

/// A full date and time with its zone.
fn date(message: &str) -> Option<i64> {
    let words = message.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',' | '"' | '\''));
    words
        .filter_map(|word| word.trim_end_matches('.').parse::<jiff::Timestamp>().ok())
        .map(|at| at.as_millisecond())
        .next()
}

/// `in 2 hours 5 minutes`, `after 30s`, `in 1h 3m`.
fn span(lower: &str) -> Option<i64> {
    let start = [" in ", " after "].iter().filter_map(|word| lower.find(word).map(|at| at + word.len())).min()?;
    let mut total = 0_i64;
    let mut number = String::new();
    let mut unit = String::new();
    // A blank at the end closes the last unit.
    for c in lower[start..].chars().chain([' ']) {
        if c.is_ascii_digit() && unit.is_empty() {
            number.push(c);
            continue;
        }
        if c.is_ascii_alphabetic() && !number.is_empty() {
            unit.push(c);
            continue;
        }
        if !number.is_empty() && !unit.is_empty() {
            total = number.parse::<i64>().ok()?.checked_mul(unit_ms(&unit)?)?.checked_add(total)?;
            number.clear();
            unit.clear();
            if c.is_ascii_digit() {
                number.push(c);
            }
        } else if !(c.is_whitespace() || c == ',') {
            break;
        }
    }
    (total > 0).then_some(total)
}

fn unit_ms(unit: &str) -> Option<i64> {
    match unit {
        "s" | "sec" | "secs" | "second" | "seconds" => Some(1_000),
        "m" | "min" | "mins" | "minute" | "minutes" => Some(60_000),
        "h" | "hr" | "hrs" | "hour" | "hours" => Some(3_600_000),
        "d" | "day" | "days" => Some(86_400_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_in_what_vendors_write() {
        let part = QuotaPart { patterns: vec!["usage limit".to_owned()] };
        let now = Timestamp::from_millis(1_760_000_000_000);
        let table = [
            ("Claude AI usage limit reached|1760003600", Some(3_600_000)),
            ("You've hit your usage limit. Try again in 2 hours 5 minutes.", Some(7_500_000)),
            ("usage limit; retry after 30s", Some(30_000)),
            ("Usage limit until 2025-10-09T09:53:20Z.", Some(3_600_000)),
            ("usage limit reached", None),
            ("some other error, try again in 5 minutes", None),
            ("usage limit reached|1000000000", None),
        ];
        for (message, ahead) in table {
            let found = until(Some(&part), message, now).map(|at| at.as_millis() - now.as_millis());
            assert_eq!(found, ahead, "{message}");
        }
        assert_eq!(until(None, "usage limit, in 5 minutes", now), None);
    }
}
