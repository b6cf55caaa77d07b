//! The language of a text, by its commonest words: only as far as the choice of a stemmer needs it.

use std::collections::HashSet;

use rust_stemmers::{Algorithm, Stemmer};

use super::super::query::fold;
use super::super::sentences::is_wide;

/// Words that are common in one of these languages and rare in the others.
const COMMON: &[(Algorithm, &[&str])] = &[
    (
        Algorithm::English,
        &["the", "of", "and", "is", "to", "what", "which", "that", "was", "for", "how", "with", "are"],
    ),
    (
        Algorithm::German,
        &[
            "der", "die", "das", "und", "ist", "nicht", "wurde", "wie", "welche", "ein", "eine", "zu", "dem", "den",
            "wer",
        ],
    ),
    (
        Algorithm::French,
        &["le", "les", "des", "et", "est", "une", "du", "dans", "qui", "quel", "quelle", "pour", "aux"],
    ),
    (Algorithm::Spanish, &["el", "los", "las", "y", "es", "una", "del", "qué", "cuál", "por", "con", "cómo", "se"]),
    (
        Algorithm::Italian,
        &["il", "gli", "della", "che", "è", "di", "sono", "nel", "quale", "per", "con", "dei", "alla"],
    ),
    (Algorithm::Portuguese, &["os", "as", "é", "uma", "do", "da", "não", "em", "qual", "para", "com", "dos", "ao"]),
    (Algorithm::Dutch, &["het", "een", "van", "niet", "wordt", "welke", "zijn", "voor", "met", "dat", "op", "wat"]),
    (Algorithm::Swedish, &["och", "att", "ett", "är", "som", "vad", "vilken", "inte", "för", "med", "den", "av"]),
    (Algorithm::Danish, &["og", "er", "hvad", "hvilken", "ikke", "af", "til", "blev", "det", "på", "som", "med"]),
    (Algorithm::Norwegian, &["og", "er", "hva", "hvilken", "ikke", "av", "til", "ble", "det", "på", "som", "med"]),
    (Algorithm::Finnish, &["ja", "on", "ei", "mikä", "oli", "että", "se", "kuka", "myös", "joka", "ovat", "kun"]),
    (Algorithm::Russian, &["и", "в", "не", "на", "что", "как", "это", "был", "для", "по", "кто", "из", "с"]),
    (Algorithm::Turkish, &["ve", "bir", "bu", "için", "ne", "ile", "olarak", "hangi", "da", "de", "daha", "olan"]),
    (Algorithm::Hungarian, &["és", "a", "az", "egy", "nem", "hogy", "mi", "van", "volt", "melyik", "meg", "is"]),
    (Algorithm::Romanian, &["și", "este", "în", "care", "nu", "la", "cu", "din", "pentru", "sunt", "ce", "unei"]),
];

/// Different common words by which a text shows its language.
const SHOWN_MIN: usize = 2;
/// Letters below this are of the Latin script.
const LATIN_END: u32 = 0x250;

/// Words of these languages that carry no topic of their own, besides [`COMMON`].
const FUNCTION_WORDS: &[&str] = &[
    "a", "about", "after", "all", "also", "an", "any", "as", "at", "be", "because", "been", "before", "being",
    "between", "but", "by", "can", "could", "did", "do", "does", "doing", "done", "during", "each", "else", "ever",
    "from", "get", "gets", "had", "has", "have", "having", "he", "her", "his", "i", "if", "in", "into", "it", "its",
    "just", "may", "me", "might", "more", "most", "much", "must", "my", "no", "not", "off", "on", "one", "only", "or",
    "other", "our", "out", "over", "own", "same", "shall", "she", "should", "so", "some", "such", "than", "their",
    "them", "then", "there", "these", "they", "this", "those", "through", "under", "until", "up", "us", "use", "used",
    "uses", "using", "very", "we", "were", "when", "where", "while", "who", "whom", "whose", "why", "will", "without",
    "would", "you", "your", "aber", "alle", "als", "am", "an", "auch", "auf", "aus", "bei", "bin", "bis", "dass",
    "diese", "dieser", "dieses", "durch", "einem", "einen", "einer", "er", "es", "für", "haben", "hat", "hatte", "ich",
    "ihr", "ihre", "im", "in", "ist", "kann", "man", "mehr", "mit", "nach", "noch", "nur", "oder", "sein", "seine",
    "sich", "sie", "sind", "so", "um", "und", "vom", "von", "vor", "war", "waren", "warum", "was", "wenn", "wenn",
    "werden", "wird", "wo", "zum", "zur", "au", "avec", "ce", "ces", "cette", "comment", "de", "elle", "en", "il",
    "ils", "la", "mais", "ne", "nous", "on", "ont", "ou", "par", "pas", "plus", "pourquoi", "que", "quels", "sa", "se",
    "ses", "son", "sont", "sur", "un", "vous", "al", "como", "cuando", "de", "donde", "ella", "en", "esta", "este",
    "fue", "ha", "hay", "la", "lo", "más", "no", "o", "para", "pero", "porque", "qué", "quién", "si", "sin", "sobre",
    "son", "su", "sus", "un", "ya",
];

/// Whether a folded word carries no topic of its own in one of the languages.
#[must_use]
pub fn is_common(word: &str) -> bool {
    FUNCTION_WORDS.contains(&word) || COMMON.iter().any(|(_, words)| words.contains(&word))
}

/// Whether a text is in English, or shows no other language.
#[must_use]
pub fn is_english(text: &str) -> bool {
    matches!(of(text), Algorithm::English)
}

/// Whether two texts may be in one language: their scripts are the same, and their common words do not show two
/// languages. Texts too short to show one may be.
#[must_use]
pub fn is_same(left: &str, right: &str) -> bool {
    let letters = |text: &str, is_counted: fn(char) -> bool| text.chars().filter(|c| is_counted(*c)).count();
    let script = |text: &str| {
        let all = letters(text, char::is_alphabetic);
        let is_wide = letters(text, is_wide) * 3 > all;
        (is_wide, !is_wide && letters(text, |c| c.is_alphabetic() && u32::from(c) < LATIN_END) * 2 >= all)
    };
    script(left) == script(right)
        && match (shown(left), shown(right)) {
            (Some(left), Some(right)) => std::mem::discriminant(&left) == std::mem::discriminant(&right),
            _ => true,
        }
}

/// The language of whose common words a text has most, if it has some, and more than of any other. Words of one or two
/// letters are left out: `a` and `on` are common in several languages.
#[must_use]
pub fn shown(text: &str) -> Option<Algorithm> {
    let folded = fold(text);
    let words: HashSet<&str> =
        folded.split(|c: char| !c.is_alphabetic()).filter(|word| word.chars().count() > 2).collect();
    let mut counts: Vec<(usize, Algorithm)> = COMMON
        .iter()
        .map(|(language, common)| (common.iter().filter(|word| words.contains(**word)).count(), *language))
        .collect();
    counts.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let (first, second) = (counts.first()?, counts.get(1)?);
    (first.0 >= SHOWN_MIN && first.0 > second.0).then_some(first.1)
}

/// The language of whose common words the text has most; English where none shows.
#[must_use]
pub fn of(text: &str) -> Algorithm {
    let mut counts = vec![0_usize; COMMON.len()];
    for word in fold(text).split(|c: char| !c.is_alphabetic()) {
        for (count, (_, words)) in counts.iter_mut().zip(COMMON) {
            *count += usize::from(words.contains(&word));
        }
    }
    let most = counts.iter().copied().max().unwrap_or(0);
    let first = counts.iter().position(|count| *count == most).unwrap_or(0);
    COMMON[first].0
}

/// Stems words as the language of a text has them.
pub struct Stems(Stemmer);

/// Characters of a text by which its language is detected.
const SAMPLE_CHARS: usize = 4_000;

impl Stems {
    #[must_use]
    pub fn of(text: &str) -> Self {
        let end = text.char_indices().nth(SAMPLE_CHARS).map_or(text.len(), |(at, _)| at);
        Self(Stemmer::create(of(&text[..end])))
    }

    /// For texts that may be short: English, unless they clearly show another language.
    #[must_use]
    pub fn of_shown(text: &str) -> Self {
        let end = text.char_indices().nth(SAMPLE_CHARS).map_or(text.len(), |(at, _)| at);
        Self(Stemmer::create(shown(&text[..end]).unwrap_or(Algorithm::English)))
    }

    #[must_use]
    pub fn stem(&self, word: &str) -> String {
        self.0.stem(word).into_owned()
    }
}

/// The stems of a word in every language that is known, each once: a single word does not show its language.
#[must_use]
pub fn stems_in_all(word: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (language, _) in COMMON {
        let stem = Stemmer::create(*language).stem(word).into_owned();
        if !found.contains(&stem) {
            found.push(stem);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_texts_are_of_one_language_unless_they_show_two() {
        for (left, right, expected) in [
            ("Pods live forever on Mars.", "Pods on an unreachable node are evicted after 300 seconds.", true),
            ("A pod is a machine.", "The pods of the node are evicted and that is all.", true),
            ("Die Pods und der Knoten.", "The pods of the node are evicted and that is all.", false),
            ("Pod は300秒後に退避されます。", "Pods are evicted after 300 seconds.", false),
            ("Узел удаляется.", "Pods are evicted after 300 seconds.", false),
        ] {
            assert_eq!(is_same(left, right), expected, "{left} / {right}");
        }
    }

    #[test]
    fn common_words_show_the_language() {
        for (text, language) in [
            ("What is the capital of France?", Algorithm::English),
            ("Welche Stadt ist die Hauptstadt?", Algorithm::German),
            ("Quelle est la capitale de la France et du monde ?", Algorithm::French),
            ("¿Cuál es la capital del país?", Algorithm::Spanish),
            ("Какой город был столицей и как это было?", Algorithm::Russian),
            ("bears", Algorithm::English),
            ("ゾウガメの寿命", Algorithm::English),
        ] {
            assert!(std::mem::discriminant(&of(text)) == std::mem::discriminant(&language), "{text}");
        }
    }
}
