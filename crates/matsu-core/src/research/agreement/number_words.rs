//! Numbers that are written as words: English, German, French, Spanish, Italian, Portuguese, Dutch, Chinese, Japanese
//! and Korean. `One` and `a` are no numbers here: they are pronouns and articles more often.

use rust_stemmers::Algorithm;

use super::units::unit;

/// Numbers below twenty and tens, in languages with spaces.
const WORDS: &[(u64, &str)] = &[
    (0, "zero"),
    (2, "two zwei deux dos dois duas twee"),
    (3, "three drei trois tres tre três drie"),
    (4, "four vier quatre cuatro quattro quatro"),
    (5, "five fünf cinq cinco cinque vijf"),
    (6, "six sechs seis zes"),
    (7, "seven sieben siete sette sete zeven"),
    (8, "eight acht huit ocho oito"),
    (9, "nine neun neuf nueve nove negen"),
    (10, "ten zehn dix diez dieci tien"),
    (11, "eleven elf onze undici"),
    (12, "twelve zwölf douze doce dodici doze twaalf dozen dutzend"),
    (13, "thirteen dreizehn treize trece tredici treze dertien"),
    (14, "fourteen vierzehn quatorze catorce quattordici veertien"),
    (15, "fifteen fünfzehn quinze quince quindici vijftien"),
    (16, "sixteen sechzehn seize dieciséis sedici dezesseis zestien"),
    (17, "seventeen siebzehn diecisiete diciassette zeventien"),
    (18, "eighteen achtzehn dieciocho diciotto achttien"),
    (19, "nineteen neunzehn diecinueve diciannove negentien"),
    (20, "twenty zwanzig vingt veinte venti vinte twintig"),
    (25, "veinticinco venticinque"),
    (30, "thirty dreißig dreissig trente treinta trenta trinta dertig"),
    (40, "forty fourty vierzig quarante cuarenta quaranta quarenta veertig"),
    (50, "fifty fünfzig cinquante cincuenta cinquanta cinquenta vijftig"),
    (60, "sixty sechzig soixante sesenta sessanta sessenta zestig"),
    (70, "seventy siebzig setenta settanta zeventig"),
    (80, "eighty achtzig ochenta ottanta oitenta tachtig"),
    (90, "ninety neunzig noventa novanta negentig"),
];
/// Words of [`WORDS`] and of [`POWERS`] that are other words elsewhere.
const ONLY_IN: &[(&str, &[Of])] = &[
    ("elf", &[Of::German, Of::Dutch]),
    ("dos", &[Of::Spanish]),
    ("tre", &[Of::Italian]),
    ("nove", &[Of::Italian, Of::Portuguese]),
    ("cent", &[Of::French]),
    ("cents", &[Of::French]),
    ("mille", &[Of::French, Of::Italian]),
    ("mil", &[Of::Spanish, Of::Portuguese]),
    ("mila", &[Of::Italian]),
    ("cento", &[Of::Italian, Of::Portuguese]),
    ("neuf", &[Of::French]),
    ("quince", &[Of::Spanish]),
    ("seize", &[Of::French]),
    ("doce", &[Of::Spanish]),
    ("venti", &[Of::Italian]),
];
/// Words by which the number before them is multiplied, as powers of ten.
const POWERS: &[(u32, &str)] = &[
    (2, "hundred hundert cent cents cien ciento cento honderd"),
    (3, "thousand tausend mille mil mila duizend"),
    (6, "million millions millionen mio millón millones milione milioni milhão milhões miljoen"),
    (9, "billion billions bn milliarde milliarden mrd milliard milliards miliardo miliardi bilhão bilhões miljard"),
    (12, "trillion trillions billionen billones"),
];
/// A longer word is no number: this calls itself for each part of a word.
const GERMAN_BYTES_MAX: usize = 80;
/// Powers that are numbers of their own.
const ALONE: &[&str] = &["hundert", "cent", "cien", "cento", "honderd", "tausend", "mille", "mil", "duizend"];
/// What may stand before a power in the place of `one`.
const ARTICLES: &[&str] = &["a", "one", "eine", "einer", "un", "una", "une", "uno", "um", "uma", "een"];
/// What may join two parts of one number.
const JOINS: &[&str] = &["and", "y", "et", "e", "en"];

const WIDE_DIGITS: &str = "〇一二三四五六七八九";
const HANGUL_DIGITS: &str = "영일이삼사오육칠팔구";
/// Powers of ten in Chinese, Japanese and Korean.
const WIDE_POWERS: &[(char, u32)] = &[
    ('十', 1),
    ('百', 2),
    ('千', 3),
    ('万', 4),
    ('萬', 4),
    ('億', 8),
    ('亿', 8),
    ('兆', 12),
    ('십', 1),
    ('백', 2),
    ('천', 3),
    ('만', 4),
    ('억', 8),
    ('조', 12),
];
/// A numeral of one letter is a number only before one of these.
const COUNTERS: &str = "年月日時分度回秒人個匹本台階歳岁円元米周週倍割件社冊枚種个位只条座支隻頭名か";
/// Korean numbers that stand before a counter.
const KOREAN_NATIVE: &[(u64, &str)] = &[
    (2, "두"),
    (3, "세"),
    (4, "네"),
    (5, "다섯"),
    (6, "여섯"),
    (7, "일곱"),
    (8, "여덟"),
    (9, "아홉"),
    (10, "열"),
    (20, "스무"),
];
const KOREAN_TENS: &[(u64, &str)] = &[
    (10, "열"),
    (20, "스물"),
    (30, "서른"),
    (40, "마흔"),
    (50, "쉰"),
    (60, "예순"),
    (70, "일흔"),
    (80, "여든"),
    (90, "아흔"),
];
const KOREAN_COUNTERS: &[&str] = &[
    "개", "명", "번", "마리", "가지", "시간", "달", "살", "대", "권", "곳", "시", "배", "차례", "사람", "종류", "단계",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    German,
    French,
    Spanish,
    Italian,
    Portuguese,
    Dutch,
    Other,
}

/// Reads numbers of one text.
pub struct NumberWords(Of);

impl NumberWords {
    /// For a text in this language.
    #[must_use]
    pub fn of(language: &Algorithm) -> Self {
        Self(match language {
            Algorithm::German => Of::German,
            Algorithm::French => Of::French,
            Algorithm::Spanish => Of::Spanish,
            Algorithm::Italian => Of::Italian,
            Algorithm::Portuguese => Of::Portuguese,
            Algorithm::Dutch => Of::Dutch,
            _ => Of::Other,
        })
    }

    fn is_read(&self, word: &str) -> bool {
        ONLY_IN.iter().find(|(one, _)| *one == word).is_none_or(|(_, languages)| languages.contains(&self.0))
    }

    /// The power of ten by which a word multiplies the number before it.
    #[must_use]
    pub fn power(&self, word: &str) -> Option<u32> {
        let found = POWERS.iter().find(|(_, words)| words.split(' ').any(|one| one == word));
        found.filter(|_| self.is_read(word)).map(|(power, _)| *power)
    }

    fn small(&self, word: &str) -> Option<u64> {
        let found = WORDS.iter().find(|(_, words)| words.split(' ').any(|one| one == word));
        found.filter(|_| self.is_read(word)).map(|(value, _)| *value).or_else(|| german(word))
    }

    /// The number that begins at a place, and how many words it has.
    #[must_use]
    pub fn read(&self, words: &[&str]) -> Option<(u64, usize)> {
        let (mut total, mut group, mut at) = (0_u64, None::<u64>, 0);
        while let Some(word) = words.get(at) {
            let before = at;
            if let Some(small) = self.small(word) {
                group = match group {
                    None => Some(small),
                    // `quatre-vingt` is four times twenty.
                    Some(4) if small == 20 && word.starts_with("vingt") => Some(80),
                    Some(left) if fits_behind(left, small) => Some(left + small),
                    Some(_) => break,
                };
                at += 1;
            } else if let Some(power) = self.power(word) {
                let is_first = group.is_none() && total == 0;
                if is_first && !ALONE.contains(word) {
                    return None;
                }
                let factor = 10_u64.checked_pow(power)?;
                let times = group.unwrap_or(1).checked_mul(factor)?;
                if power == 2 {
                    group = Some(times);
                } else {
                    total = total.checked_add(times)?;
                    group = None;
                }
                at += 1;
            } else if ARTICLES.contains(word) && words.get(at + 1).is_some_and(|next| self.power(next).is_some()) {
                if group.is_some() || total > 0 {
                    break;
                }
                group = Some(1);
                at += 1;
            } else if at > 0 && JOINS.contains(word) && self.goes_on(group, words.get(at + 1)) {
                at += 1;
            }
            if at == before {
                break;
            }
        }
        (at > 0).then(|| (total + group.unwrap_or(0), at))
    }

    /// Whether a number goes on behind `and`: only where a smaller part can follow.
    fn goes_on(&self, group: Option<u64>, next: Option<&&str>) -> bool {
        let small = next.and_then(|next| self.small(next));
        small.is_some_and(|small| group.is_some_and(|left| left >= 20 && fits_behind(left, small)))
    }
}

/// Whether a number can be added behind another: a unit behind tens, tens behind hundreds.
fn fits_behind(left: u64, small: u64) -> bool {
    let is_free = |place: u64| left.is_multiple_of(place) && small < place;
    left >= 20
        && small > 0
        && (is_free(100) || left % 100 >= 20 && is_free(10) || matches!(left % 100, 60 | 80) && small < 20)
}

/// German numbers in one word: `fünfundzwanzig`, `zweihundert`, `dreitausend`.
fn german(word: &str) -> Option<u64> {
    if word.len() > GERMAN_BYTES_MAX {
        return None;
    }
    let simple = |part: &str| match part {
        "ein" | "eine" => Some(1),
        _ => WORDS.iter().find(|(_, words)| words.split(' ').any(|one| one == part)).map(|(value, _)| *value),
    };
    for (name, factor) in [("tausend", 1_000), ("hundert", 100)] {
        if let Some((left, right)) = word.split_once(name).filter(|(left, _)| !left.is_empty()) {
            let rest = if right.is_empty() { 0 } else { simple(right).or_else(|| german(right))? };
            return Some(simple(left).or_else(|| german(left))? * factor + rest);
        }
    }
    let (left, right) = word.split_once("und")?;
    let (ones, tens) = (simple(left)?, simple(right)?);
    (ones < 10 && tens >= 20).then_some(ones + tens)
}

/// The power of ten that a token behind a number begins with, with what is left of the token.
#[must_use]
pub fn wide_power(token: &str) -> Option<(u32, &str)> {
    let first = token.chars().next()?;
    let (_, power) = WIDE_POWERS.iter().find(|(sign, _)| *sign == first)?;
    // `千米` is a kilometre.
    unit(token).is_none().then(|| (*power, &token[first.len_utf8()..]))
}

fn wide_digit(c: char) -> Option<u64> {
    let place = |digits: &str| digits.chars().position(|digit| digit == c);
    let found = place(WIDE_DIGITS).or_else(|| place(HANGUL_DIGITS)).and_then(|at| u64::try_from(at).ok());
    if matches!(c, '两' | '兩') { Some(2) } else { found }
}

/// Numbers in a token of a script without spaces, each with what follows it in the token.
#[must_use]
pub fn wide_numbers<'a>(token: &'a str, next: Option<&str>) -> Vec<(u64, &'a str)> {
    if token.chars().any(|c| matches!(u32::from(c), 0xAC00..=0xD7A3)) {
        return korean(token, next).into_iter().collect();
    }
    let is_numeral = |c: char| wide_digit(c).is_some() || WIDE_POWERS.iter().any(|(sign, _)| *sign == c);
    let mut found = Vec::new();
    let mut rest = token;
    while let Some(start) = rest.find(is_numeral) {
        let run: String = rest[start..].chars().take_while(|c| is_numeral(*c)).collect();
        let behind = &rest[start + run.len()..];
        let is_number = match run.chars().count() {
            // `十分` is `enough`, unless it is said to be a time.
            1 if run == "十" && behind.starts_with('分') => behind[3..].starts_with(['間', '钟', '鐘']),
            1 => !"一百千万萬億亿兆".contains(&run) && behind.starts_with(|c| COUNTERS.contains(c)),
            _ => !matches!(run.as_str(), "万一" | "一一" | "千万" | "百万" | "万万") || unit(behind).is_some(),
        };
        if let Some(value) = wide_value(&run).filter(|_| is_number) {
            found.push((value, behind));
        }
        rest = behind;
    }
    found
}

fn korean<'a>(token: &'a str, next: Option<&str>) -> Option<(u64, &'a str)> {
    if let Some(value) = korean_native(token) {
        let is_counted = next.is_some_and(|next| KOREAN_COUNTERS.iter().any(|counter| next.starts_with(counter)));
        return is_counted.then_some((value, ""));
    }
    let is_numeral = |c: char| wide_digit(c).is_some() || WIDE_POWERS.iter().any(|(sign, _)| *sign == c);
    let run: String = token.chars().take_while(|c| is_numeral(*c)).collect();
    let behind = &token[run.len()..];
    // Words such as `이사` (a move) have two numerals; with a power, and alone or before a unit, it is a number.
    let has_power = run.chars().any(|c| WIDE_POWERS.iter().any(|(sign, _)| *sign == c));
    let is_number = run.chars().count() > 1 && has_power && (behind.is_empty() || is_counter(behind));
    wide_value(&run).filter(|_| is_number).map(|value| (value, behind))
}

/// `열두` is twelve: tens, then what is left.
fn korean_native(token: &str) -> Option<u64> {
    let simple = |word: &str| match word {
        "한" => Some(1),
        _ => KOREAN_NATIVE.iter().find(|(_, one)| *one == word).map(|(value, _)| *value),
    };
    let tens = KOREAN_TENS.iter().find_map(|(value, word)| Some((*value, token.strip_prefix(word)?)));
    match tens {
        Some((tens, "")) => Some(tens),
        Some((tens, rest)) => Some(tens + simple(rest).filter(|ones| *ones < 10)?),
        None => simple(token).filter(|value| *value > 1),
    }
}

fn is_counter(behind: &str) -> bool {
    let counters = KOREAN_COUNTERS.iter().chain(&["년", "월", "일", "층", "도", "점"]);
    unit(behind).is_some() || counters.into_iter().any(|counter| behind.starts_with(counter))
}

/// `三百五十` and `三五〇` are 350.
#[must_use]
pub fn wide_value(run: &str) -> Option<u64> {
    let (mut total, mut section, mut digits) = (0_u64, 0_u64, None::<u64>);
    for c in run.chars() {
        if let Some(digit) = wide_digit(c) {
            digits = Some(digits.unwrap_or(0).checked_mul(10)?.checked_add(digit)?);
            continue;
        }
        let (_, power) = WIDE_POWERS.iter().find(|(sign, _)| *sign == c)?;
        let factor = 10_u64.pow(*power);
        if *power >= 4 {
            let times = section.checked_add(digits.take().unwrap_or(0))?;
            total = total.checked_add(times.max(1).checked_mul(factor)?)?;
            section = 0;
        } else {
            section = section.checked_add(digits.take().unwrap_or(1).checked_mul(factor)?)?;
        }
    }
    total.checked_add(section)?.checked_add(digits.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_words_are_numbers() {
        for (language, text, expected) in [
            (Algorithm::English, "twenty five", Some((25, 2))),
            (Algorithm::English, "two hundred and fifty people", Some((250, 4))),
            (Algorithm::English, "three million", Some((3_000_000, 2))),
            (Algorithm::English, "a thousand", Some((1000, 2))),
            (Algorithm::English, "thousand", None),
            (Algorithm::English, "one day", None),
            (Algorithm::English, "two and three", Some((2, 1))),
            (Algorithm::German, "fünfundzwanzig", Some((25, 1))),
            (Algorithm::German, "zweihundertfünfzig", Some((250, 1))),
            (Algorithm::German, "hundert", Some((100, 1))),
            (Algorithm::German, "bundesland", None),
            (Algorithm::French, "quatre vingt dix ans", Some((90, 3))),
            (Algorithm::French, "soixante dix", Some((70, 2))),
            (Algorithm::French, "deux cents", Some((200, 2))),
            (Algorithm::English, "cents", None),
            (Algorithm::Spanish, "treinta y cinco", Some((35, 3))),
            (Algorithm::Spanish, "dos mil", Some((2000, 2))),
        ] {
            let words: Vec<&str> = text.split(' ').collect();
            assert_eq!(NumberWords::of(&language).read(&words), expected, "{text}");
        }
    }

    #[test]
    fn numbers_that_are_too_large_are_none() {
        let nines = "九".repeat(16);
        for run in ["九".repeat(40), format!("{nines}千{}万", "九".repeat(19)), "億".repeat(9_999)] {
            assert_eq!(wide_value(&run).filter(|value| *value > 999_900_000_000), None, "{run}");
        }
        assert_eq!(german(&"einhundert".repeat(100_000)), None);
    }

    #[test]
    fn numerals_of_scripts_without_spaces_are_numbers_only_where_they_count() {
        for (token, next, expected) in [
            ("高さは三百三十三メートル", None, Some(333)),
            ("二〇〇五年", None, Some(2005)),
            ("五分後", None, Some(5)),
            ("十分な", None, None),
            ("三人が来た", None, Some(3)),
            ("一部", None, None),
            ("三億五千万円", None, Some(350_000_000)),
            ("两个人", None, Some(2)),
            ("统一", None, None),
            ("다섯", Some("명이"), Some(5)),
            ("열두", Some("명이다"), Some(12)),
            ("서른다섯", Some("명"), Some(35)),
            ("스무", Some("명"), Some(20)),
            ("열쇠", Some("개"), None),
            ("이사", None, None),
            ("오십", Some("명"), Some(50)),
            ("삼백년", None, Some(300)),
        ] {
            let found = wide_numbers(token, next).first().map(|(value, _)| *value);
            assert_eq!(found, expected, "{token}");
        }
    }
}
