//! The language of a text, by its commonest words: only as far as the choice of a stemmer needs it.

use rust_stemmers::{Algorithm, Stemmer};

use super::super::query::fold;

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
