//! Quota messages: whether a vendor says that a quota is used up, and when there is more to be had. Pure.

mod clock_time;

use jiff::tz::TimeZone;
use matsu_core::clock::Timestamp;

use super::definition::QuotaPart;

/// The windows of vendors are at most a month long; a later time is a misreading.
const FURTHEST_MS: i64 = 32 * 24 * 3600 * 1000;

/// What a message says about a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quota {
    /// There is more at this time.
    Until(Timestamp),
    /// There is more later; the message does not say when.
    Later,
    /// It does not come back by itself: a person has to pay, or to raise a limit.
    Spent,
}

/// Reads a message. `None`: it is about something else. Times without a zone are of this machine.
#[must_use]
pub fn read(part: Option<&QuotaPart>, message: &str, now: Timestamp) -> Option<Quota> {
    read_in(part, message, now, &TimeZone::system())
}

fn read_in(part: Option<&QuotaPart>, message: &str, now: Timestamp, here: &TimeZone) -> Option<Quota> {
    let part = part?;
    let lower = message.to_lowercase().replace('\u{2019}', "'");
    let has = |patterns: &[String]| patterns.iter().any(|pattern| lower.contains(&pattern.to_lowercase()));
    let is_spent = has(&part.spent);
    if !is_spent && !has(&part.patterns) {
        return None;
    }
    let at = epoch(message)
        .or_else(|| date(message))
        .or_else(|| clock_time::find(&lower, now, here))
        .or_else(|| span(&lower).and_then(|ms| ms.checked_add(now.as_millis())));
    let ahead = at.and_then(|at| at.checked_sub(now.as_millis()));
    Some(match (at, ahead) {
        (Some(at), Some(1..=FURTHEST_MS)) => Quota::Until(Timestamp::from_millis(at)),
        _ if is_spent => Quota::Spent,
        _ => Quota::Later,
    })
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

/// `in 2 hours 5 minutes`, `after 30s`, `in 1h 3m`, `in 2 days and 3 hours`, `in 1.5s`.
fn span(lower: &str) -> Option<i64> {
    let starts = [" in ", " after "].into_iter().flat_map(|word| lower.match_indices(word));
    let mut starts: Vec<usize> = starts.map(|(at, word)| at + word.len()).collect();
    starts.sort_unstable();
    starts.into_iter().find_map(|start| span_at(&lower[start..]))
}

fn span_at(text: &str) -> Option<i64> {
    let mut total = 0_i64;
    let (mut number, mut unit) = (String::new(), String::new());
    // A blank at the end closes the last unit.
    for c in text.chars().chain([' ']) {
        if (c.is_ascii_digit() || (c == '.' && !number.is_empty())) && unit.is_empty() {
            number.push(c);
            continue;
        }
        if c.is_ascii_alphabetic() {
            unit.push(c);
            continue;
        }
        if !number.is_empty() && !unit.is_empty() {
            total = times(&number, unit_ms(&unit)?)?.checked_add(total)?;
            number.clear();
            unit.clear();
            if c.is_ascii_digit() {
                number.push(c);
            }
        } else if number.is_empty() && unit == "and" {
            unit.clear();
        } else if !unit.is_empty() || !(c.is_whitespace() || c == ',') {
            break;
        }
    }
    (total > 0).then_some(total)
}

fn times(number: &str, unit_ms: i64) -> Option<i64> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let whole = whole.parse::<i64>().ok()?.checked_mul(unit_ms)?;
    // Thousandths are enough.
    let thousandths = format!("{part:0<3}").get(..3)?.parse::<i64>().ok()?;
    thousandths.checked_mul(unit_ms)?.checked_div(1_000)?.checked_add(whole)
}

fn unit_ms(unit: &str) -> Option<i64> {
    match unit {
        "ms" | "milliseconds" => Some(1),
        "s" | "sec" | "secs" | "second" | "seconds" => Some(1_000),
        "m" | "min" | "mins" | "minute" | "minutes" => Some(60_000),
        "h" | "hr" | "hrs" | "hour" | "hours" => Some(3_600_000),
        "d" | "day" | "days" => Some(86_400_000),
        "w" | "week" | "weeks" => Some(604_800_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::definition::Definition;

    /// 2025-10-09T08:53:20Z.
    const NOW: i64 = 1_760_000_000_000;
    const HOUR: i64 = 3_600_000;

    fn found(part: Option<&QuotaPart>, message: &str) -> Option<Quota> {
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        read_in(part, message, Timestamp::from_millis(NOW), &berlin)
    }

    fn ahead(ms: i64) -> Option<Quota> {
        Some(Quota::Until(Timestamp::from_millis(NOW + ms)))
    }

    #[test]
    fn times_are_found_in_what_vendors_write() {
        let part = QuotaPart { patterns: vec!["usage limit".to_owned()], spent: vec!["out of credits".to_owned()] };
        let table = [
            ("Claude AI usage limit reached|1760003600", ahead(HOUR)),
            ("You've hit your usage limit. Try again in 2 hours 5 minutes.", ahead(7_500_000)),
            ("usage limit in this plan; try again in 2 days and 3 hours", ahead(51 * HOUR)),
            ("usage limit; retry after 30s", ahead(30_000)),
            ("usage limit; please try again in 1.5s", ahead(1_500)),
            ("usage limit; please try again in 250ms", ahead(250)),
            ("Usage limit until 2025-10-09T09:53:20Z.", ahead(HOUR)),
            ("usage limit reached", Some(Quota::Later)),
            ("usage limit in this plan", Some(Quota::Later)),
            ("usage limit reached|1000000000", Some(Quota::Later)),
            ("You're out of credits", Some(Quota::Spent)),
            ("You're out of credits, they return in 2 hours", ahead(2 * HOUR)),
            ("some other error, try again in 5 minutes", None),
        ];
        for (message, expected) in table {
            assert_eq!(found(Some(&part), message), expected, "{message}");
        }
        assert_eq!(found(None, "usage limit, in 5 minutes"), None);
    }

    /// The texts are put together from what the programs contain; this machine's clock shows 10:53:20.
    #[test]
    fn the_messages_of_each_program_are_known_by_its_definition() {
        let texts = include_str!("quota/messages.tsv");
        let mut seen = 0;
        for line in texts.lines().filter(|line| !line.starts_with('#')) {
            let mut columns = line.split('\t');
            let (agent, expected, message) =
                (columns.next().unwrap(), columns.next().unwrap(), columns.next().unwrap());
            let text = match agent {
                "claude" => include_str!("../../../../agents/claude.toml"),
                "codex" => include_str!("../../../../agents/codex.toml"),
                "gemini" => include_str!("../../../../agents/gemini.toml"),
                other => panic!("{other}"),
            };
            let definition = Definition::parse(text, |_| None).unwrap();
            let expected = match expected {
                "later" => Some(Quota::Later),
                "spent" => Some(Quota::Spent),
                "no" => None,
                time => {
                    let at: jiff::Timestamp = time.parse().unwrap();
                    Some(Quota::Until(Timestamp::from_millis(at.as_millisecond())))
                }
            };
            assert_eq!(found(definition.quota.as_ref(), message), expected, "{agent}: {message}");
            seen += 1;
        }
        assert!(seen > 20);
    }
}
