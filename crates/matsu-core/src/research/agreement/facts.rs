//! The facts of a text that cannot be said in other words: numbers with their units, months, names.

use std::collections::BTreeSet;

use super::super::query::fold;
use super::super::ranking::language;
use super::super::sentences::{is_wide, sentences};

/// Spellings of one unit; the first is the unit's name here.
const UNITS: &[&[&str]] = &[
    &["%", "percent", "prozent", "パーセント", "퍼센트", "％"],
    &["m", "metre", "metres", "meter", "meters", "メートル", "米"],
    &["km", "kilometre", "kilometres", "kilometer", "kilometers", "キロメートル", "公里"],
    &["cm", "centimetre", "centimetres", "centimeter", "centimeters", "センチメートル"],
    &["mm", "millimetre", "millimetres", "millimeter", "millimeters"],
    &["mile", "miles", "マイル"],
    &["foot", "feet", "ft", "フィート"],
    &["inch", "inches"],
    &["kg", "kilogram", "kilograms", "kilogramm", "キログラム", "公斤"],
    &["g", "gram", "grams", "gramm", "グラム"],
    &["mg", "milligram", "milligrams"],
    &["ton", "tons", "tonne", "tonnes", "トン", "吨"],
    &["pound", "pounds", "lb", "lbs"],
    &["l", "litre", "litres", "liter", "liters", "リットル"],
    &["ml", "millilitre", "millilitres", "milliliter", "milliliters"],
    &["gallon", "gallons", "gal"],
    &["ms", "millisecond", "milliseconds", "millisekunden", "ミリ秒"],
    &["s", "sec", "second", "seconds", "sekunde", "sekunden", "秒"],
    &["min", "minute", "minutes", "minuten", "分", "분"],
    &["h", "hour", "hours", "stunde", "stunden", "時間", "小时", "시간"],
    &["day", "days", "tag", "tage", "tagen", "日間", "天"],
    &["week", "weeks", "woche", "wochen", "週間", "周"],
    &["month", "months", "monat", "monate", "monaten", "か月", "个月"],
    &["year", "years", "jahr", "jahre", "jahren", "年間", "歳"],
    &["byte", "bytes"],
    &["kb", "kilobyte", "kilobytes", "kib"],
    &["mb", "megabyte", "megabytes", "mib"],
    &["gb", "gigabyte", "gigabytes", "gib"],
    &["tb", "terabyte", "terabytes", "tib"],
    &["°c", "celsius", "℃"],
    &["°f", "fahrenheit", "℉"],
    &["hz", "hertz"],
    &["khz"],
    &["mhz"],
    &["ghz"],
    &["w", "watt", "watts"],
    &["kw", "kilowatt", "kilowatts"],
    &["mw", "megawatt", "megawatts"],
    &["dollar", "dollars", "usd"],
    &["euro", "euros", "eur"],
    &["yen", "円", "jpy"],
];

/// Months by their number; each in the languages whose dates are most often met.
const MONTHS: [&[&str]; 12] = [
    &["january", "jan", "januar", "janvier", "enero"],
    &["february", "feb", "februar", "février", "febrero"],
    &["march", "mar", "märz", "mars", "marzo"],
    &["april", "apr", "avril", "abril"],
    &["may", "mai", "mayo"],
    &["june", "jun", "juni", "juin", "junio"],
    &["july", "jul", "juli", "juillet", "julio"],
    &["august", "aug", "août", "agosto"],
    &["september", "sep", "sept", "septembre", "septiembre"],
    &["october", "oct", "oktober", "okt", "octobre", "octubre"],
    &["november", "nov", "novembre", "noviembre"],
    &["december", "dec", "dezember", "dez", "décembre", "diciembre"],
];

/// After one of these the first word of a sentence is a name, if it is written with a capital.
const AFTER_A_NAME: &[&str] =
    &["is", "was", "has", "had", "became", "began", "won", "wrote", "founded", "died", "lives"];
/// Letters by which a name is known in other forms of its word.
const NAME_START: usize = 4;
/// Letters of katakana that make a name or a foreign word.
const KATAKANA_MIN: usize = 3;

/// What a text states in figures and names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Each number with the name of its unit, if one follows it.
    amounts: BTreeSet<(String, Option<&'static str>)>,
    months: BTreeSet<usize>,
    names: BTreeSet<String>,
    /// Every word, folded, for the names of another text.
    words: Words,
}

/// Compared only where names are looked up; two texts of the same facts may have other words.
#[derive(Clone, Debug, Default)]
struct Words(String);

impl PartialEq for Words {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Words {}

impl Facts {
    #[must_use]
    pub fn of(text: &str) -> Self {
        let folded = fold(text);
        let tokens = tokens(&folded);
        let mut facts = Self { words: Words(spaced(&folded)), names: names(text), ..Self::default() };
        for (at, token) in tokens.iter().enumerate() {
            if let Some(number) = token.strip_prefix('#') {
                facts.amounts.insert((number.to_owned(), tokens.get(at + 1).and_then(|next| unit(next))));
            } else if is_beside_number(&tokens, at)
                && let Some(month) = MONTHS.iter().position(|names| names.contains(&token.as_str()))
            {
                facts.months.insert(month + 1);
            }
        }
        facts
    }

    /// Whether another text has all of them, and no other one in their place.
    #[must_use]
    pub fn are_in(&self, other: &Self) -> bool {
        self.figures_are_in(other) && self.names.iter().all(|name| other.words.has(name))
    }

    /// The same without names: numbers, units and months.
    #[must_use]
    pub fn figures_are_in(&self, other: &Self) -> bool {
        let has_amount = |(number, unit): &(String, Option<&'static str>)| {
            let mut same = other.amounts.iter().filter(|(theirs, _)| theirs == number).peekable();
            // A number without a unit may mean the claim's unit; one with another unit does not.
            same.peek().is_some() && (unit.is_none() || same.any(|(_, theirs)| theirs.is_none() || theirs == unit))
        };
        let has_months = other.months.is_empty() || self.months.is_subset(&other.months);
        self.amounts.iter().all(has_amount) && has_months
    }

    /// Names for which a text has no word that begins alike: `Japanese` is there if `Japan` is. Names in scripts without
    /// spaces are not looked at, because every longer word of katakana would be one.
    pub fn names_without_trace<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a str> {
        let is_there = |name: &str| {
            let start: String = name.chars().take(NAME_START).collect();
            other.words.0.contains(&format!(" {start}"))
        };
        self.names.iter().map(String::as_str).filter(move |name| !name.chars().any(is_wide) && !is_there(name))
    }
}

impl Words {
    fn has(&self, name: &str) -> bool {
        if name.chars().all(is_wide) { self.0.contains(name) } else { self.0.contains(&format!(" {name} ")) }
    }
}

/// Words, signs of units, and numbers with `#` before them.
fn tokens(folded: &str) -> Vec<String> {
    let chars: Vec<char> = folded.chars().collect();
    let mut found: Vec<String> = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let c = chars[at];
        let start = at;
        if c.is_numeric() {
            let is_part = |at: usize| {
                chars[at].is_numeric()
                    || matches!(chars[at], '.' | ',') && chars.get(at + 1).is_some_and(|next| next.is_numeric())
            };
            while at < chars.len() && is_part(at) {
                at += 1;
            }
            found.push(format!("#{}", number(&chars[start..at])));
        } else if c.is_alphabetic() || c == '°' {
            let wide = is_wide(c);
            at += 1;
            while at < chars.len() && chars[at].is_alphabetic() && is_wide(chars[at]) == wide {
                at += 1;
            }
            found.push(chars[start..at].iter().collect());
        } else {
            if matches!(c, '%' | '％' | '℃' | '℉') {
                found.push(c.to_string());
            }
            at += 1;
        }
    }
    found
}

/// A comma before three digits divides thousands; any other mark is that of a decimal.
fn number(chars: &[char]) -> String {
    let mut out = String::new();
    for (at, c) in chars.iter().enumerate() {
        let digits = chars[at + 1..].iter().take_while(|next| next.is_numeric()).count();
        match c {
            ',' if digits == 3 => {}
            ',' | '.' => out.push('.'),
            digit => out.push(*digit),
        }
    }
    out
}

fn unit(token: &str) -> Option<&'static str> {
    let is_it = |spelling: &&str| {
        let is_longer = token.chars().all(is_wide) && spelling.chars().all(is_wide) && token.starts_with(*spelling);
        **spelling == *token || is_longer
    };
    UNITS.iter().find(|spellings| spellings.iter().any(is_it)).and_then(|unit| unit.first().copied())
}

/// May and March are verbs, too: only beside a number they are months.
fn is_beside_number(tokens: &[String], at: usize) -> bool {
    let is_number = |at: Option<usize>| at.and_then(|at| tokens.get(at)).is_some_and(|token| token.starts_with('#'));
    is_number(at.checked_sub(1)) || is_number(Some(at + 1))
}

/// Folded, every mark a space, with a space at both ends.
fn spaced(folded: &str) -> String {
    let plain: String = folded.chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    format!(" {} ", plain.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Words that are written with a capital though no sentence begins with them, and long words of katakana. German writes
/// every noun so, which says nothing.
fn names(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let is_german = matches!(language::of(text), rust_stemmers::Algorithm::German);
    for span in sentences(text) {
        let sentence = &text[span.start..span.end];
        let words: Vec<&str> = sentence.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        for (at, word) in words.iter().enumerate() {
            let letters = word.chars().count();
            let is_capital = word.chars().next().is_some_and(char::is_uppercase) && letters > 1 && !is_german;
            let next = words.get(at + 1);
            let is_name_at_start = next.is_some_and(|next| AFTER_A_NAME.contains(next)) && letters > 2;
            let folded = fold(word);
            if is_capital && (at > 0 || is_name_at_start) && !language::is_common(&folded) && !is_month(&folded) {
                found.insert(folded);
            }
        }
    }
    let mut run = String::new();
    for c in text.chars().chain([' ']) {
        if matches!(u32::from(c), 0x30A1..=0x30FA | 0x30FC) {
            run.push(c);
            continue;
        }
        let word = std::mem::take(&mut run);
        if word.chars().count() >= KATAKANA_MIN && unit(&word).is_none() {
            found.insert(word);
        }
    }
    found
}

fn is_month(folded: &str) -> bool {
    MONTHS.iter().any(|names| names.contains(&folded))
}
