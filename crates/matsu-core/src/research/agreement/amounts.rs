//! Numbers of a text with their units: in digits or in words, with magnitudes and currencies.

use std::collections::BTreeSet;

use rust_stemmers::Algorithm;

use super::super::sentences::is_wide;
use super::number_words::{NumberWords, wide_numbers, wide_power, wide_value};
use super::units::{money, month, unit};

/// Words of one number at most.
const NUMBER_WORDS_MAX: usize = 8;
/// Larger powers of ten are cut to this one: a text that repeats `million` must not make a number as long as itself.
const POWER_MAX: u32 = 24;
/// Words for powers behind one number at most.
const POWERS_MAX: usize = 4;
/// Unitless numbers of so many digits are years, as far as comparing goes.
const YEAR_DIGITS: usize = 4;
/// Spellings of percent that have two words, or stand before their number.
const PERCENT: [&str; 6] = [" pour cent", " por ciento", " por cien", " per cento", " per cent", " por cento"];
const PERCENT_BEFORE: &str = "百分之";

/// A number with the name of its unit, if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amount {
    number: String,
    unit: Option<&'static str>,
}

impl Amount {
    /// Whether a text has the amount. A number without a unit may mean the unit; one with another unit does not.
    #[must_use]
    pub fn is_among(&self, others: &[Self]) -> bool {
        let fits = |other: &Self| self.unit.is_none() || other.unit.is_none() || other.unit == self.unit;
        others.iter().any(|other| other.number == self.number && fits(other))
    }

    /// Whether it can stand in the place of another: both are of one kind and differ.
    #[must_use]
    pub fn is_rival_of(&self, other: &Self) -> bool {
        let is_year = |amount: &Self| amount.number.len() == YEAR_DIGITS && amount.number.starts_with(['1', '2']);
        let is_same_kind = match (self.unit, other.unit) {
            (None, None) => is_year(self) == is_year(other),
            (left, right) => left == right,
        };
        is_same_kind && self.number != other.number
    }
}

#[derive(Clone, Debug)]
struct Token {
    text: String,
    is_number: bool,
    /// The sign of money right before the number.
    sign: Option<char>,
    /// A comma or another mark stands before it, so no number in words goes on here.
    is_after_mark: bool,
}

/// The amounts of a folded text in their order, and the numbers of the months that stand beside a number.
#[must_use]
pub fn amounts_and_months(folded: &str, language: &Algorithm) -> (Vec<Amount>, BTreeSet<usize>) {
    let has_kana = folded.chars().any(|c| matches!(u32::from(c), 0x3040..=0x30FF));
    let is_chinese = !has_kana && folded.chars().any(is_wide);
    let tokens = tokens(&with_percent_signs(folded), language);
    let reader = NumberWords::of(language);
    let (mut amounts, mut months) = (Vec::new(), BTreeSet::new());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        if token.is_number {
            let sign = token.sign.and_then(|sign| money(sign, is_chinese));
            let (number, behind) = with_powers(&tokens, at, &reader);
            let unit = sign.or_else(|| unit_behind(&behind));
            amounts.push(Amount { number, unit });
            at = behind.at.max(at + 1);
            continue;
        }
        if let Some((value, words)) = in_words(&tokens, at, &reader) {
            let behind = Behind::at(&tokens, at + words);
            amounts.push(Amount { number: value.to_string(), unit: unit_behind(&behind) });
            at += words;
            continue;
        }
        if token.text.starts_with(is_wide) {
            let next = tokens.get(at + 1).map(|next| next.text.as_str());
            for (value, rest) in wide_numbers(&token.text, next) {
                let of_next = || next.filter(|_| rest.is_empty()).and_then(unit);
                amounts.push(Amount { number: value.to_string(), unit: unit(rest).or_else(of_next) });
            }
        } else if let Some(month) = month(&token.text).filter(|_| is_beside_number(&tokens, at)) {
            months.insert(month);
        }
        at += 1;
    }
    (amounts, months)
}

/// What follows a number: the rest of a token, and the place where reading goes on.
struct Behind {
    text: String,
    at: usize,
}

impl Behind {
    fn at(tokens: &[Token], at: usize) -> Self {
        Self { text: tokens.get(at).map(|token| token.text.clone()).unwrap_or_default(), at }
    }
}

fn unit_behind(behind: &Behind) -> Option<&'static str> {
    unit(&behind.text)
}

/// A number in digits with the magnitudes behind it: `2.5 million`, `3億5000万円`.
fn with_powers(tokens: &[Token], start: usize, reader: &NumberWords) -> (String, Behind) {
    let mut number = tokens[start].text.clone();
    let mut at = start + 1;
    let mut total: Option<u128> = None;
    while let Some(token) = tokens.get(at).filter(|_| at <= start + 2 * POWERS_MAX) {
        if let Some(power) = reader.power(&token.text) {
            number = shifted(&number, power);
            at += 1;
            continue;
        }
        let (mut power, mut rest) = (0, token.text.as_str());
        while let Some((more, left)) = wide_power(rest) {
            (power, rest) = (power + more, left);
        }
        if power == 0 {
            break;
        }
        number = shifted(&number, power);
        at += 1;
        let follows = tokens.get(at).filter(|next| rest.is_empty() && next.is_number && !next.is_after_mark);
        let Some(next) = follows else {
            return (added(total, number), Behind { text: rest_or_next(rest, tokens, at), at });
        };
        total = Some(total.unwrap_or(0).saturating_add(number.parse().unwrap_or(0)));
        number.clone_from(&next.text);
        at += 1;
    }
    (added(total, number), Behind::at(tokens, at))
}

fn rest_or_next(rest: &str, tokens: &[Token], at: usize) -> String {
    if rest.is_empty() { Behind::at(tokens, at).text } else { rest.to_owned() }
}

fn added(total: Option<u128>, number: String) -> String {
    match (total, number.parse::<u128>()) {
        (Some(total), Ok(number)) => total.saturating_add(number).to_string(),
        _ => number,
    }
}

/// A number in words that begins at a place, with the count of its tokens.
fn in_words(tokens: &[Token], at: usize, reader: &NumberWords) -> Option<(u64, usize)> {
    let rest = &tokens[at..tokens.len().min(at + NUMBER_WORDS_MAX)];
    let is_in = |(offset, token): &(usize, &Token)| !token.is_number && (*offset == 0 || !token.is_after_mark);
    let words: Vec<&str> = rest.iter().enumerate().take_while(is_in).map(|(_, token)| token.text.as_str()).collect();
    // `Neuf` is `nine` only before a plural; else it is `new`.
    let is_new = words.first() == Some(&"neuf") && !words.get(1).is_some_and(|next| next.ends_with(['s', 'x']));
    reader.read(&words).filter(|_| !is_new)
}

/// The decimal mark of a number, moved to the right.
fn shifted(number: &str, power: u32) -> String {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let power = usize::try_from(power.min(POWER_MAX)).unwrap_or(0);
    let mut digits = part.to_owned();
    while digits.len() < power {
        digits.push('0');
    }
    let (moved, left) = digits.split_at(power);
    let left = left.trim_end_matches('0');
    let whole = format!("{whole}{moved}");
    let trimmed = whole.trim_start_matches('0');
    let whole = if trimmed.is_empty() { "0" } else { trimmed };
    if left.is_empty() { whole.to_owned() } else { format!("{whole}.{left}") }
}

/// Percent in every spelling as the sign behind its number.
fn with_percent_signs(folded: &str) -> String {
    let text = PERCENT.iter().fold(folded.to_owned(), |text, spelling| text.replace(spelling, " %"));
    let mut parts = text.split(PERCENT_BEFORE);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits: String = part.chars().take_while(|c| c.is_ascii_digit() || matches!(c, '.' | ',')).collect();
        let numerals: String = part.chars().take_while(|c| wide_value(&c.to_string()).is_some()).collect();
        let (run, value) = match wide_value(&numerals).filter(|_| digits.is_empty() && !numerals.is_empty()) {
            Some(value) => (numerals, value.to_string()),
            None => (digits.clone(), digits),
        };
        out.push_str(&format!(" {value}% {}", &part[run.len()..]));
    }
    out
}

/// Words, signs of units and of money, and numbers.
fn tokens(folded: &str, language: &Algorithm) -> Vec<Token> {
    let chars: Vec<char> = folded.chars().collect();
    let mut found: Vec<Token> = Vec::new();
    let (mut at, mut is_after_mark) = (0, false);
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
            let digits = number(&chars[start..at], language);
            if !goes_on(&mut found, &digits, &chars, start, language) {
                let sign = if is_negative(&chars, start) { "-" } else { "" };
                let text = format!("{sign}{digits}");
                found.push(Token { text, is_number: true, sign: sign_before(&chars, start), is_after_mark });
            }
        } else if c.is_alphabetic() || c == '°' {
            let wide = is_wide(c);
            at += 1;
            while at < chars.len() && chars[at].is_alphabetic() && is_wide(chars[at]) == wide {
                at += 1;
            }
            let text = chars[start..at].iter().collect();
            found.push(Token { text, is_number: false, sign: None, is_after_mark });
        } else {
            at += 1;
            let (is_money, is_before) = (money(c, false).is_some(), sign_before(&chars, at).is_some());
            if is_money && is_before && chars.get(at).is_some_and(|next| next.is_numeric()) {
                // The number has it.
            } else if is_money || unit(&c.to_string()).is_some() {
                found.push(Token { text: c.to_string(), is_number: false, sign: None, is_after_mark });
            } else {
                is_after_mark = !matches!(c, ' ' | '-' | '‐' | '‑') || is_after_mark && c == ' ';
                continue;
            }
        }
        is_after_mark = false;
    }
    found
}

/// Thousands that a space divides: `10 000`. Where most languages would write a comma, only these write a space.
fn goes_on(found: &mut [Token], digits: &str, chars: &[char], start: usize, language: &Algorithm) -> bool {
    let has_spaces = matches!(
        language,
        Algorithm::French
            | Algorithm::Russian
            | Algorithm::Swedish
            | Algorithm::Finnish
            | Algorithm::Norwegian
            | Algorithm::Hungarian
    );
    let is_behind_digit = start > 1 && chars[start - 1] == ' ' && chars[start - 2].is_numeric();
    let Some(last) = found.last_mut().filter(|last| last.is_number && is_behind_digit) else { return false };
    let is_group = digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_thousands = is_group && (has_spaces || digits.starts_with('0')) && !last.text.contains('.');
    if is_thousands {
        last.text.push_str(digits);
    }
    is_thousands
}

fn sign_before(chars: &[char], start: usize) -> Option<char> {
    start.checked_sub(1).and_then(|at| chars.get(at)).copied().filter(|sign| money(*sign, false).is_some())
}

/// A minus before a number; in a range or between two words it is a hyphen.
fn is_negative(chars: &[char], start: usize) -> bool {
    let before = |back: usize| start.checked_sub(back).and_then(|at| chars.get(at)).copied();
    matches!(before(1), Some('-' | '−')) && before(2).is_none_or(|c| c.is_whitespace() || c == '(')
}

/// Without marks of thousands, and with a full stop as the mark of decimals. A comma before three digits divides
/// thousands; in languages that write decimals with a comma a full stop does.
fn number(chars: &[char], language: &Algorithm) -> String {
    let has_decimal_comma = matches!(
        language,
        Algorithm::German
            | Algorithm::Spanish
            | Algorithm::Italian
            | Algorithm::Portuguese
            | Algorithm::Dutch
            | Algorithm::Danish
            | Algorithm::Turkish
            | Algorithm::Romanian
    );
    let divider = if has_decimal_comma { '.' } else { ',' };
    let mut out = String::new();
    for (at, c) in chars.iter().enumerate() {
        let digits = chars[at + 1..].iter().take_while(|next| next.is_numeric()).count();
        match c {
            mark if *mark == divider && digits == 3 && out != "0" && !out.contains('.') => {}
            ',' | '.' => out.push('.'),
            digit => out.push(*digit),
        }
    }
    out
}

/// May and March are verbs, too: only beside a number they are months.
fn is_beside_number(tokens: &[Token], at: usize) -> bool {
    let is_number = |at: Option<usize>| at.and_then(|at| tokens.get(at)).is_some_and(|token| token.is_number);
    is_number(at.checked_sub(1)) || is_number(Some(at + 1))
}
