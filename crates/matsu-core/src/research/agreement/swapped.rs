//! Two sentences that are built alike, with another name or another word in the same place.
//!
//! What `names.rs` cannot see is seen here, because two texts are compared: the first word of a sentence, German nouns,
//! and names in Chinese, Japanese and Korean. The words are aligned; where one run of words stands in the place of
//! another, both are looked at.

use rust_stemmers::Algorithm;

use super::super::query::fold;
use super::super::ranking::language::is_common;
use super::super::sentences::is_wide;
use super::language;
use super::number_words::NumberWords;
use super::units::{month, unit};

/// So much of the shorter sentence's words must be the other's in the same order; else they are not built alike.
const ALIKE: f64 = 0.6;
/// A sentence that differs in more places is another sentence.
const PLACES_MAX: usize = 2;
/// Longer sentences are not aligned: that takes the product of their lengths.
const WORDS_MAX: usize = 400;
/// Words that begin with the same so many letters are forms of one word.
const SAME_START: usize = 4;
/// Letters of a name in Chinese, Japanese or Korean.
const WIDE_NAME_MIN: usize = 2;
const WIDE_NAME_MAX: usize = 10;

/// Before a name in German; before other nouns there is an article or an adjective.
const GERMAN_BEFORE: &[&str] = &[
    "in", "aus", "nach", "von", "bei", "für", "mit", "durch", "um", "ist", "war", "heißt", "und", "oder", "bis", "an",
    "gegen", "über",
];
/// Words before a name that say who it is.
const TITLES: &[&str] = &[
    "dr",
    "prof",
    "professor",
    "mr",
    "mrs",
    "ms",
    "sir",
    "president",
    "präsident",
    "king",
    "könig",
    "queen",
    "königin",
    "herr",
    "frau",
    "mme",
    "monsieur",
    "señor",
    "kaiser",
    "general",
    "stadt",
    "city",
];
/// Verbs after which the first word of a sentence is what it speaks of.
const VERBS: &[&str] = &[
    "is", "was", "has", "had", "can", "will", "may", "must", "does", "did", "became", "began", "won", "wrote", "built",
    "made", "led", "ran", "found", "sold", "sang", "said", "gave", "took", "came", "went", "held", "kept", "lost",
    "met", "set", "thought", "bought", "brought", "caught", "chose", "drew", "flew", "grew", "knew", "rose", "saw",
    "spoke", "stood", "struck", "threw", "died", "lives",
];
/// What may follow a name in Japanese.
const JAPANESE_BEHIND: &str = "はがをにのでとへもや、。・";
/// What may stand before a name in Chinese.
const CHINESE_BEFORE: &str = "在由是于於和与與及到从從叫，、为為";
/// Particles at the end of Korean nouns that say who or where; the forms of one particle stand together. Behind objects
/// and adverbs other words that mean the same are more frequent than other names.
const KOREAN_PARTICLES: [&[&str]; 5] = [&["에서"], &["은", "는"], &["이", "가"], &["의"], &["에"]];
/// Ends of Korean stems that are verbs.
const KOREAN_VERBS: &[char] = &['하', '되', '시', '키', '지', '있', '없'];

/// A word, or a letter of Chinese or Japanese, as it is aligned.
#[derive(Clone, Debug)]
struct Piece {
    text: String,
    /// In its place in its own sentence it may be a name.
    is_name: bool,
    /// A number or a unit: those are compared as amounts.
    is_amount: bool,
}

/// A sentence as others are aligned with it.
#[derive(Clone, Debug)]
pub struct Aligned {
    pieces: Vec<Piece>,
    has_kana: bool,
}

/// A run of pieces in each of two sentences.
struct Difference {
    left: std::ops::Range<usize>,
    right: std::ops::Range<usize>,
}

impl Aligned {
    #[must_use]
    pub fn of(sentence: &str) -> Self {
        let words = words(sentence);
        let language = language::of(sentence);
        let reader = NumberWords::of(&language);
        let piece = |(at, word): (usize, &String)| {
            let text = fold(word);
            let is_number = text.chars().any(char::is_numeric) || reader.read(&[text.as_str()]).is_some();
            Piece { is_amount: is_number || unit(&text).is_some(), is_name: is_name(&words, at, &language), text }
        };
        let pieces = words.iter().enumerate().map(piece).collect();
        Self { pieces, has_kana: sentence.chars().any(|c| matches!(u32::from(c), 0x3040..=0x30FF)) }
    }

    /// A name of this sentence in the place of which another sentence, which is built alike, has another one.
    #[must_use]
    pub fn other_name(&self, other: &Self) -> Option<String> {
        let places = self.places(other)?;
        let shared = self.pieces.len() - places.iter().map(|place| place.left.len()).sum::<usize>();
        let count = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
        let replaced: Vec<&Difference> =
            places.iter().filter(|place| !place.left.is_empty() && !place.right.is_empty()).collect();
        let shorter = self.pieces.len().min(other.pieces.len());
        if count(shared) < count(shorter) * ALIKE || replaced.len() > PLACES_MAX {
            return None;
        }
        replaced.into_iter().find(|place| self.names_differ(other, place)).map(|place| self.text(&place.left))
    }

    /// Whether another sentence has a word of its own in the place of one of this sentence: then the two are no copies,
    /// however many words they share. Forms of one word and words that carry no topic may differ.
    #[must_use]
    pub fn has_other_word(&self, other: &Self) -> bool {
        let Some(places) = self.places(other) else { return false };
        places.iter().any(|place| {
            let (left, right) = (&self.pieces[place.left.clone()], &other.pieces[place.right.clone()]);
            let is_topic = |piece: &&Piece| !piece.is_amount && !is_common(&piece.text);
            let (left, right): (Vec<&Piece>, Vec<&Piece>) =
                (left.iter().filter(is_topic).collect(), right.iter().filter(is_topic).collect());
            let is_alike = |piece: &Piece| right.iter().any(|other| begin_alike(&piece.text, &other.text));
            !left.is_empty() && !right.is_empty() && !left.iter().all(|piece| is_alike(piece))
        })
    }

    /// The places where two sentences differ. Nothing if one is too long.
    fn places(&self, other: &Self) -> Option<Vec<Difference>> {
        let (left, right) = (&self.pieces, &other.pieces);
        if left.len() > WORDS_MAX || right.len() > WORDS_MAX {
            return None;
        }
        // The longest common subsequence, from the end.
        let width = right.len() + 1;
        let mut longest = vec![0_u16; (left.len() + 1) * width];
        for i in (0..left.len()).rev() {
            for j in (0..right.len()).rev() {
                longest[i * width + j] = if left[i].text == right[j].text {
                    longest[(i + 1) * width + j + 1] + 1
                } else {
                    longest[(i + 1) * width + j].max(longest[i * width + j + 1])
                };
            }
        }
        let mut places: Vec<Difference> = Vec::new();
        let (mut i, mut j) = (0, 0);
        let (mut from_i, mut from_j) = (0, 0);
        while i < left.len() || j < right.len() {
            if i < left.len() && j < right.len() && left[i].text == right[j].text {
                if from_i < i || from_j < j {
                    places.push(Difference { left: from_i..i, right: from_j..j });
                }
                (i, j) = (i + 1, j + 1);
                (from_i, from_j) = (i, j);
            } else if j == right.len() || i < left.len() && longest[(i + 1) * width + j] >= longest[i * width + j + 1] {
                i += 1;
            } else {
                j += 1;
            }
        }
        if from_i < i || from_j < j {
            places.push(Difference { left: from_i..i, right: from_j..j });
        }
        Some(places)
    }

    fn names_differ(&self, other: &Self, place: &Difference) -> bool {
        let (left, right) = (&self.pieces[place.left.clone()], &other.pieces[place.right.clone()]);
        let is_letters = |pieces: &[Piece]| pieces.iter().all(|piece| piece.text.chars().all(is_wide_not_hangul));
        if is_letters(left) && is_letters(right) {
            return self.wide_names_differ(other, place);
        }
        if let ([left], [right]) = (left, right)
            && let (Some(left), Some(right)) = (korean_noun(&left.text), korean_noun(&right.text))
        {
            return left.1 == right.1 && !begin_alike(left.0, right.0);
        }
        let names = |pieces: &[Piece]| -> Vec<String> {
            pieces.iter().filter(|piece| piece.is_name).map(|piece| piece.text.clone()).collect()
        };
        let (mine, theirs) = (names(left), names(right));
        let is_in = |name: &String, sentence: &Self| sentence.pieces.iter().any(|piece| begin_alike(&piece.text, name));
        let is_short_form = is_initials(&self.text(&place.left), right) || is_initials(&other.text(&place.right), left);
        !is_short_form && mine.iter().any(|name| !is_in(name, other)) && theirs.iter().any(|name| !is_in(name, self))
    }

    fn wide_names_differ(&self, other: &Self, place: &Difference) -> bool {
        let (left, right) = (self.text(&place.left), other.text(&place.right));
        let is_name = |text: &str| {
            (WIDE_NAME_MIN..=WIDE_NAME_MAX).contains(&text.chars().count()) && !text.chars().any(is_hiragana)
        };
        // One thing is often written in katakana here and in Chinese letters there.
        let is_katakana = |text: &str| text.chars().any(|c| matches!(u32::from(c), 0x30A0..=0x30FF));
        let is_shared = is_katakana(&left) != is_katakana(&right) || left.chars().any(|c| right.contains(c));
        if !is_name(&left) || !is_name(&right) || is_shared {
            return false;
        }
        if self.has_kana || other.has_kana {
            let is_end = |sentence: &Self, end: usize| {
                sentence.pieces.get(end).is_none_or(|piece| JAPANESE_BEHIND.contains(&piece.text))
            };
            return is_end(self, place.left.end) && is_end(other, place.right.end);
        }
        let is_start = |sentence: &Self, start: usize| {
            start.checked_sub(1).is_none_or(|before| CHINESE_BEFORE.contains(&sentence.pieces[before].text))
        };
        is_start(self, place.left.start) && is_start(other, place.right.start)
    }

    fn text(&self, range: &std::ops::Range<usize>) -> String {
        self.pieces[range.clone()].iter().map(|piece| piece.text.as_str()).collect()
    }
}

/// Words of scripts with spaces and of Korean; single letters of Chinese and Japanese.
fn words(sentence: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut word = String::new();
    for c in sentence.chars().chain([' ']) {
        let is_letter = is_wide_not_hangul(c);
        if !c.is_alphanumeric() || is_letter {
            found.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
        } else {
            word.push(c);
        }
        if is_letter || matches!(c, '、' | '。' | '，') {
            found.push(c.to_string());
        }
    }
    found
}

fn is_wide_not_hangul(c: char) -> bool {
    is_wide(c) && !is_hangul(c)
}

fn is_hangul(c: char) -> bool {
    matches!(u32::from(c), 0xAC00..=0xD7A3)
}

fn is_hiragana(c: char) -> bool {
    matches!(u32::from(c), 0x3040..=0x309F)
}

/// Whether the word at a place may be a name, by how it and its neighbours are written.
fn is_name(words: &[String], at: usize, language: &Algorithm) -> bool {
    let word = words[at].as_str();
    let folded = fold(word);
    let is_capital = word.chars().next().is_some_and(char::is_uppercase) && word.chars().count() > 1;
    if !is_capital || is_common(&folded) || month(&folded).is_some() || TITLES.contains(&folded.as_str()) {
        return false;
    }
    let is_german = matches!(language, Algorithm::German);
    match at.checked_sub(1).map(|before| words[before].as_str()) {
        None => is_name_at_start(words, is_german, matches!(language, Algorithm::English)),
        Some(before) if is_german => {
            let is_capital = before.chars().next().is_some_and(char::is_uppercase) && at > 1;
            is_capital || GERMAN_BEFORE.contains(&before)
        }
        Some(_) => true,
    }
}

/// Every sentence begins with a capital. A name there has no article, and its verb behind it.
fn is_name_at_start(words: &[String], is_german: bool, is_english: bool) -> bool {
    let (word, Some(next)) = (words[0].as_str(), words.get(1)) else { return false };
    if next.chars().next().is_some_and(char::is_uppercase) {
        return true;
    }
    if is_german {
        // A verb in the plural has no name before it.
        return !next.ends_with("en");
    }
    let is_plural = word.ends_with('s') && !["ss", "us", "is"].iter().any(|end| word.ends_with(end));
    let is_verb = VERBS.contains(&next.as_str())
        || next.ends_with("ed")
        || next.ends_with('s') && words.get(2).is_some_and(|third| is_common(&fold(third)));
    !is_english || is_verb && !is_plural && !word.ends_with("ly") && !word.ends_with("ing")
}

/// A Korean noun without its particle, and the number of the particle.
fn korean_noun(word: &str) -> Option<(&str, usize)> {
    let without = |forms: &&[&str]| forms.iter().find_map(|form| word.strip_suffix(form));
    let (particle, stem) = KOREAN_PARTICLES.iter().enumerate().find_map(|(n, forms)| Some((n, without(forms)?)))?;
    let is_noun = stem.chars().all(is_hangul) && stem.chars().count() >= WIDE_NAME_MIN;
    let is_verb = stem.chars().next_back().is_some_and(|last| KOREAN_VERBS.contains(&last));
    (is_noun && !is_verb).then_some((stem, particle))
}

/// Whether two folded words are forms of one word.
fn begin_alike(left: &str, right: &str) -> bool {
    if left == right {
        return true;
    }
    let shared = left.chars().zip(right.chars()).take_while(|(left, right)| left == right).count();
    let shortest = if left.starts_with(is_hangul) { WIDE_NAME_MIN } else { SAME_START };
    shared >= shortest
}

/// `who` for World Health Organization.
fn is_initials(short: &str, long: &[Piece]) -> bool {
    let initials: String = long.iter().filter_map(|piece| piece.text.chars().next()).collect();
    long.len() > 1 && initials == short
}
