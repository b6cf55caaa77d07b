//! Times of day in words: `resets 3pm (UTC)`, `try again at 14:05`, `resets Aug 8 at 9am`, `Nov 19th, 2026 3:05 PM`.

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use matsu_core::clock::Timestamp;

/// What comes before a time. Behind them a number means an hour or a day.
const MARKERS: [&str; 9] = [
    "resets at ",
    "resets on ",
    "resets ",
    "reset at ",
    "reset on ",
    "try again at ",
    "try again on ",
    "again after ",
    "until ",
];

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// Words that are looked at behind a marker.
const WORDS_MAX: usize = 8;

/// Milliseconds since 1970. `lower` is in small letters.
pub fn find(lower: &str, now: Timestamp, here: &TimeZone) -> Option<i64> {
    let mut starts: Vec<usize> = MARKERS
        .into_iter()
        .flat_map(|marker| lower.match_indices(marker))
        .map(|(at, marker)| at + marker.len())
        .collect();
    starts.sort_unstable();
    starts.dedup();
    starts.into_iter().find_map(|start| Parts::read(&lower[start..]).at(now, here))
}

#[derive(Default)]
struct Parts {
    year: Option<i16>,
    month: Option<i8>,
    day: Option<i8>,
    time: Option<Time>,
    zone: Option<TimeZone>,
}

impl Parts {
    fn read(text: &str) -> Self {
        let mut parts = Self::default();
        let words = text.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',' | ';' | '\u{b7}'));
        let mut words = words.filter(|word| !word.is_empty()).take(WORDS_MAX).peekable();
        while let Some(word) = words.next() {
            let is_last = word.ends_with('.');
            let word = word.trim_end_matches(['.', '!']);
            let half = words.peek().and_then(|next| half(next));
            if !parts.take(word, half) {
                break;
            }
            if half.is_some() && parts.time.is_some() {
                words.next_if(|next| self::half(next).is_some());
            }
            if is_last {
                break;
            }
        }
        parts
    }

    /// `false`: the word belongs to something else.
    fn take(&mut self, word: &str, half: Option<i8>) -> bool {
        if matches!(word, "at" | "on" | "the" | "of") {
            return true;
        }
        if let Some(month) = month(word) {
            self.month = Some(month);
            return true;
        }
        if let Some(time) = time(word, half).filter(|_| self.time.is_none()) {
            self.time = Some(time);
            return true;
        }
        let ordinal = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let is_ordinal = matches!(&word[ordinal.len()..], "" | "st" | "nd" | "rd" | "th");
        match ordinal.parse::<i16>() {
            Ok(year @ 2000..) if is_ordinal => self.year = Some(year),
            Ok(day @ 1..=31) if is_ordinal && self.day.is_none() => self.day = i8::try_from(day).ok(),
            _ => match zone(word).filter(|_| self.time.is_some()) {
                Some(zone) => self.zone = Some(zone),
                None => return false,
            },
        }
        true
    }

    fn at(self, now: Timestamp, here: &TimeZone) -> Option<i64> {
        let zone = self.zone.unwrap_or_else(|| here.clone());
        let today = jiff::Timestamp::from_millisecond(now.as_millis()).ok()?.to_zoned(zone.clone());
        let on = |date: Date| {
            let at = date.to_datetime(self.time.unwrap_or(Time::midnight())).to_zoned(zone.clone()).ok()?;
            Some(at.timestamp().as_millisecond())
        };
        let is_ahead = |at: &i64| *at > now.as_millis();
        match (self.month, self.day, self.time) {
            (Some(month), Some(day), _) => {
                let years = self.year.map_or(today.year()..=today.year() + 1, |year| year..=year);
                years.filter_map(|year| on(Date::new(year, month, day).ok()?)).find(is_ahead)
            }
            (None, None, Some(_)) => {
                [today.date(), today.date().tomorrow().ok()?].into_iter().filter_map(on).find(is_ahead)
            }
            _ => None,
        }
    }
}

fn month(word: &str) -> Option<i8> {
    let at = MONTHS.iter().position(|month| word.starts_with(month))?;
    let is_name = word.len() == 3 || word == "sept" || word.len() > 4 || matches!(word, "june" | "july");
    i8::try_from(at + 1).ok().filter(|_| is_name && word.chars().all(|c| c.is_ascii_alphabetic()))
}

/// Hours to add for a word that says which half of the day.
fn half(word: &str) -> Option<i8> {
    match word.trim_matches(|c: char| !c.is_ascii_alphabetic()).replace('.', "").as_str() {
        "am" => Some(0),
        "pm" => Some(12),
        _ => None,
    }
}

/// `3pm`, `3:05pm`, `14:05`, `14:05:09`; and `3` or `3:05` with the half of the day behind it.
fn time(word: &str, next_half: Option<i8>) -> Option<Time> {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let half = match &word[digits.len()..] {
        "" => next_half,
        suffix => Some(half(suffix)?),
    };
    let mut numbers = digits.split(':').map(str::parse::<i8>);
    let hour = numbers.next()?.ok()?;
    let minute = numbers.next().transpose().ok()?;
    let second = numbers.next().transpose().ok()?;
    let hour = match half {
        Some(hours) if (1..=12).contains(&hour) => hour % 12 + hours,
        Some(_) => return None,
        // A number alone is no time.
        None => minute.map(|_| hour)?,
    };
    Time::new(hour, minute.unwrap_or(0), second.unwrap_or(0), 0).ok()
}

/// `utc`, `gmt`, or a name of the time zone database, whatever its letters.
fn zone(word: &str) -> Option<TimeZone> {
    match word {
        "utc" | "gmt" | "z" => Some(TimeZone::UTC),
        name if name.contains('/') => TimeZone::get(name).ok(),
        _ => None,
    }
}
