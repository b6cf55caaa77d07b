//! When a schedule fires next.

use std::time::Duration;

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::{AmbiguousOffset, TimeZone};

use matsu_core::clock::Timestamp;
use matsu_core::limits::SCHEDULE_GAP_MIN;
use matsu_core::schedule::Rule;

const HOUR: Duration = Duration::from_secs(3_600);

/// The first time after this one; `None`: never again.
///
/// # Errors
/// The rule cannot be read; says what is expected.
pub fn next_after(rule: &Rule, after: Timestamp) -> Result<Option<Timestamp>, String> {
    match rule {
        Rule::Cron { expression, timezone } => {
            let cron = cron(expression)?;
            let now = jiff::Timestamp::from_millisecond(after.as_millis()).map_err(|error| error.to_string())?;
            let now = now.to_zoned(zone(timezone)?);
            // The only other refusal is a search that found no time in the years to come.
            let next = cron.find_next_occurrence(&now, false).ok();
            Ok(next.map(|next| Timestamp::from_millis(next.timestamp().as_millisecond())))
        }
        Rule::Every { seconds } if Duration::from_secs(*seconds) < SCHEDULE_GAP_MIN => {
            Err(format!("every {seconds} seconds is too often; give at least {}", SCHEDULE_GAP_MIN.as_secs()))
        }
        Rule::Every { seconds } => Ok(Some(after.plus(Duration::from_secs(*seconds)))),
        Rule::At { at } => Ok(Some(*at).filter(|at| *at > after)),
    }
}

/// The first time after this one, for a schedule that is to fire at least once.
///
/// # Errors
/// The rule cannot be read, or there is no such time.
pub fn first_after(rule: &Rule, now: Timestamp) -> Result<Timestamp, String> {
    next_after(rule, now)?.ok_or_else(|| match rule {
        Rule::Cron { expression, .. } => {
            format!("the cron expression {expression:?} would never fire: no date matches it; correct its day or month")
        }
        Rule::At { at } => {
            format!("the time {at} has passed, it is {now} now; give a future time, such as {}", now.plus(HOUR))
        }
        Rule::Every { .. } => "the schedule would never fire".to_owned(),
    })
}

/// The newest time that has come, of a schedule that was due at `first`.
///
/// # Errors
/// The rule cannot be read; says what is expected.
pub fn newest(rule: &Rule, first: Timestamp, now: Timestamp) -> Result<Timestamp, String> {
    match rule {
        Rule::Cron { expression, timezone } => {
            let cron = cron(expression)?;
            let until = jiff::Timestamp::from_millisecond(now.as_millis()).map_err(|error| error.to_string())?;
            let last = cron.find_previous_occurrence(&until.to_zoned(zone(timezone)?), true).ok();
            let last = last.map(|last| Timestamp::from_millis(last.timestamp().as_millisecond()));
            Ok(last.filter(|last| *last <= now).map_or(first, |last| last.max(first)))
        }
        Rule::Every { seconds } => {
            let step = (*seconds).max(SCHEDULE_GAP_MIN.as_secs());
            Ok(first.plus(Duration::from_secs(now.since(first).as_secs() / step * step)))
        }
        Rule::At { .. } => Ok(first),
    }
}

fn cron(expression: &str) -> Result<Cron, String> {
    let unread = |why: String| {
        format!(
            "the cron expression {expression:?} {why} Expected are five fields, minute hour day month weekday, such as \
             \"0 7 * * 1-5\""
        )
    };
    let fields = expression.split_whitespace().count();
    if fields != 5 && !expression.starts_with('@') {
        return Err(unread(format!("has {fields} fields.")));
    }
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
    parser.parse(expression).map_err(|error| unread(format!("cannot be read: {error}")))
}

fn zone(name: &str) -> Result<TimeZone, String> {
    let unknown = |_| format!("unknown time zone {name:?}; use a name such as Europe/Berlin or UTC");
    TimeZone::get(name).map_err(unknown)
}

/// A point in time as a person writes it: RFC 3339, or a date and a time in a zone. As for cron expressions, a time in
/// the hour that is left out when the clocks change means the first moment after it, and of a time that comes twice the
/// first one counts.
///
/// # Errors
/// It is neither.
pub fn point(text: &str, timezone: &str) -> Result<Timestamp, String> {
    if let Some(at) = Timestamp::parse(text) {
        return Ok(at);
    }
    let civil: jiff::civil::DateTime = text.trim().replace(' ', "T").parse().map_err(|_| {
        format!("the time {text:?} cannot be read; expected is a date and a time, such as \"2030-01-31 07:00\"")
    })?;
    let zone = zone(timezone)?;
    let ambiguous = zone.to_ambiguous_timestamp(civil);
    let is_left_out = matches!(ambiguous.offset(), AmbiguousOffset::Gap { .. });
    // In a gap this is the time by the clock as it was before, so the change lies at it or before it.
    let at = ambiguous.compatible().map_err(|error| error.to_string())?;
    let change = || zone.preceding(at.saturating_add(jiff::SignedDuration::from_secs(1)).ok()?).next();
    let at = if is_left_out { change().map_or(at, |change| change.timestamp()) } else { at };
    Ok(Timestamp::from_millis(at.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn berlin(expression: &str) -> Rule {
        Rule::Cron { expression: expression.to_owned(), timezone: "Europe/Berlin".to_owned() }
    }

    fn times(rule: &Rule, from: &str, count: usize) -> Vec<String> {
        let mut now = at(from);
        let mut times = Vec::new();
        for _ in 0..count {
            now = next_after(rule, now).unwrap().unwrap();
            times.push(now.to_string());
        }
        times
    }

    #[test]
    fn an_hour_of_the_day_stays_the_same_when_the_clocks_change() {
        let seven = berlin("0 7 * * *");
        let spring = times(&seven, "2026-03-27T12:00:00Z", 3);
        assert_eq!(spring, ["2026-03-28T06:00:00Z", "2026-03-29T05:00:00Z", "2026-03-30T05:00:00Z"]);
        let autumn = times(&seven, "2026-10-23T12:00:00Z", 3);
        assert_eq!(autumn, ["2026-10-24T05:00:00Z", "2026-10-25T06:00:00Z", "2026-10-26T06:00:00Z"]);
    }

    #[test]
    fn a_time_in_the_gap_or_in_the_repeated_hour_fires_once_a_day() {
        let half_past_two = berlin("30 2 * * *");
        let spring = times(&half_past_two, "2026-03-28T12:00:00Z", 2);
        assert!(spring[0].starts_with("2026-03-29T01:"), "{spring:?}");
        assert_eq!(spring[1], "2026-03-30T00:30:00Z");
        let autumn = times(&half_past_two, "2026-10-24T12:00:00Z", 2);
        assert!(autumn[0].starts_with("2026-10-25T0"), "{autumn:?}");
        assert_eq!(autumn[1], "2026-10-26T01:30:00Z");
    }

    #[test]
    fn of_the_times_that_passed_the_newest_counts() {
        let now = at("2026-03-30T10:00:51Z");
        let every_minute = berlin("* * * * *");
        assert_eq!(newest(&every_minute, at("2025-01-01T00:00:00Z"), now), Ok(at("2026-03-30T10:00:00Z")));
        assert_eq!(newest(&every_minute, at("2026-03-30T10:00:00Z"), now), Ok(at("2026-03-30T10:00:00Z")));
        let on_time = at("2026-03-30T05:00:00Z");
        assert_eq!(newest(&berlin("0 7 * * *"), on_time, on_time), Ok(on_time));
        let yearly = at("2026-01-01T06:00:00Z");
        assert_eq!(newest(&berlin("0 7 1 1 *"), yearly, now), Ok(yearly));
        let hourly = Rule::Every { seconds: 3_600 };
        assert_eq!(newest(&hourly, at("2026-03-30T06:30:00Z"), now), Ok(at("2026-03-30T09:30:00Z")));
        assert_eq!(newest(&Rule::At { at: yearly }, yearly, now), Ok(yearly));
        // The hour that is left out, and the one that comes twice: a look back finds what a look ahead names.
        for (day, first) in
            [("2026-03-29T12:00:00Z", "2026-03-25T01:30:00Z"), ("2026-10-25T12:00:00Z", "2026-10-20T00:30:00Z")]
        {
            let rule = berlin("30 2 * * *");
            let ahead = times(&rule, first, 10).into_iter().rfind(|time| at(time) <= at(day)).unwrap();
            assert_eq!(newest(&rule, at(first), at(day)), Ok(at(&ahead)), "{day}");
        }
    }

    #[test]
    fn rules_that_cannot_be_kept_are_refused_or_never_fire() {
        let now = at("2026-11-01T00:00:00Z");
        assert_eq!(next_after(&berlin("0 0 30 2 *"), now), Ok(None), "there is no 30 February");
        for (rule, expected) in [
            (berlin("* * * * * *"), "has 6 fields. Expected are five fields"),
            (berlin("61 * * * *"), "five fields"),
            (berlin(""), "has 0 fields. Expected are five fields"),
            (Rule::Every { seconds: 59 }, "too often"),
            (Rule::Cron { expression: "0 7 * * *".to_owned(), timezone: "Mars/Base".to_owned() }, "Europe/Berlin"),
        ] {
            let error = next_after(&rule, now).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(next_after(&Rule::At { at: now }, now), Ok(None), "it has passed");
    }

    #[test]
    fn a_point_in_time_is_read_in_its_zone() {
        assert_eq!(point("2026-07-01 07:00", "Europe/Berlin"), Ok(at("2026-07-01T05:00:00Z")));
        assert_eq!(point("2026-07-01T07:00:00+09:00", "UTC"), Ok(at("2026-06-30T22:00:00Z")));
        for (text, expected) in [
            // 02:00 to 03:00 is left out.
            ("2026-03-29 02:30", "2026-03-29T01:00:00Z"),
            ("2026-03-29 02:00", "2026-03-29T01:00:00Z"),
            ("2026-03-29 01:59", "2026-03-29T00:59:00Z"),
            ("2026-03-29 03:00", "2026-03-29T01:00:00Z"),
            ("2040-03-25 02:30", "2040-03-25T01:00:00Z"),
            // 02:30 comes twice.
            ("2026-10-25 02:30", "2026-10-25T00:30:00Z"),
        ] {
            assert_eq!(point(text, "Europe/Berlin"), Ok(at(expected)), "{text}");
            let minute = &text[14..16];
            let (day, hour) = (text[..10].replace('-', " "), &text[11..13]);
            let [_, month, day] = day.split(' ').collect::<Vec<_>>()[..] else { panic!("{day}") };
            let rule = berlin(&format!("{minute} {hour} {day} {month} *"));
            let midnight = point(&format!("{} 00:00", &text[..10]), "Europe/Berlin").unwrap();
            let fires = next_after(&rule, midnight).unwrap().unwrap();
            assert_eq!(fires, at(expected), "a cron expression means the same by {text}");
        }
        assert_eq!(point("2026-10-04 02:10", "Australia/Lord_Howe"), Ok(at("2026-10-03T15:30:00Z")));
        assert_eq!(point("2011-12-30 12:00", "Pacific/Apia"), Ok(at("2011-12-30T10:00:00Z")));
        assert!(point("tomorrow", "UTC").unwrap_err().contains("2030-01-31 07:00"));
    }
}
