//! The kind of answer that a question asks for, by its question words, and whether a sentence has one of that kind.

use super::super::query::fold;
use super::super::sentences::is_wide;

/// What an answer must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A date, a year, a span of time.
    Time,
    /// A count or an amount.
    Amount,
    /// A person, a group.
    Name,
    /// A place.
    Place,
    /// A reason.
    Reason,
    /// A way of doing something.
    Way,
    Anything,
}

/// Question words, the more telling ones first. Those of scripts without spaces may stand anywhere.
const WORDS: &[(Asked, &[&str])] = &[
    (
        Asked::Amount,
        &[
            "how many",
            "how much",
            "how long",
            "how far",
            "how old",
            "how large",
            "how big",
            "how tall",
            "how often",
            "what percentage",
            "what percent",
            "wie viele",
            "wie viel",
            "wie lange",
            "wie hoch",
            "wie groß",
            "wie oft",
            "combien",
            "cuántos",
            "cuántas",
            "cuánto",
            "quanti",
            "quante",
            "quantos",
            "hoeveel",
            "сколько",
            "多少",
            "几个",
            "几次",
            "几种",
            "几位",
            "几",
            "多长",
            "多大",
            "多高",
            "いくつ",
            "いくら",
            "何人",
            "何個",
            "何回",
            "何種",
            "何か国",
            "何本",
            "何歳",
            "何メートル",
            "何キロ",
            "何度",
            "何パーセント",
            "どのくらい",
            "どれくらい",
            "몇",
            "얼마",
        ],
    ),
    (
        Asked::Time,
        &[
            "when",
            "what year",
            "which year",
            "what date",
            "what century",
            "what decade",
            "what month",
            "what day",
            "since what",
            "wann",
            "welchem jahr",
            "welches jahr",
            "welchem jahrhundert",
            "quand",
            "quelle année",
            "cuándo",
            "qué año",
            "quando",
            "wanneer",
            "когда",
            "何年",
            "いつ",
            "何月",
            "何日",
            "何世紀",
            "何時",
            "哪一年",
            "哪年",
            "什么时候",
            "何时",
            "哪个世纪",
            "哪一天",
            "几月",
            "언제",
        ],
    ),
    (
        Asked::Name,
        &[
            "who",
            "whose",
            "whom",
            "wer",
            "wem",
            "wen",
            "wessen",
            "qui",
            "quién",
            "quiénes",
            "chi",
            "quem",
            "wie is",
            "кто",
            "誰",
            "だれ",
            "谁",
            "哪位",
            "哪个人",
            "何という人",
            "누구",
        ],
    ),
    (
        Asked::Place,
        &[
            "where",
            "what city",
            "what country",
            "which city",
            "which country",
            "what state",
            "wo",
            "woher",
            "wohin",
            "welcher stadt",
            "welchem land",
            "où",
            "dónde",
            "dove",
            "onde",
            "waar",
            "где",
            "どこ",
            "何県",
            "何国",
            "哪里",
            "哪儿",
            "哪个城市",
            "哪个国家",
            "何处",
            "어디",
        ],
    ),
    (
        Asked::Reason,
        &[
            "why",
            "warum",
            "weshalb",
            "wieso",
            "pourquoi",
            "por qué",
            "perché",
            "waarom",
            "почему",
            "なぜ",
            "为什么",
            "왜",
        ],
    ),
    (
        Asked::Way,
        &[
            "how to",
            "how do",
            "how can",
            "how does",
            "how did",
            "wie kann",
            "wie wird",
            "comment",
            "cómo",
            "どうやって",
            "如何",
            "怎样",
            "怎么",
            "어떻게",
        ],
    ),
];

/// Words with which reasons and ways begin.
const REASONS: &[&str] = &[
    "because",
    "due to",
    "since",
    "so that",
    "in order to",
    "as a result",
    "caused",
    "weil",
    "wegen",
    "aufgrund",
    "um",
    "damit",
    "parce",
    "porque",
    "perché",
    "omdat",
    "потому",
    "ため",
    "から",
    "ので",
    "因为",
    "由于",
    "为了",
    "때문",
];
const WAYS: &[&str] = &[
    "by",
    "using",
    "through",
    "via",
    "durch",
    "mit",
    "indem",
    "par",
    "により",
    "によって",
    "で",
    "通过",
    "用",
    "利用",
];

/// What the question asks for.
#[must_use]
pub fn asked(question: &str) -> Asked {
    let folded = format!(" {} ", spaced(question));
    let found = WORDS.iter().find(|(_, words)| words.iter().any(|word| has(&folded, word)));
    found.map_or(Asked::Anything, |(asked, _)| *asked)
}

/// Whether a folded word is part of a phrase that asks.
#[must_use]
pub fn is_question_word(word: &str) -> bool {
    WORDS.iter().flat_map(|(_, phrases)| *phrases).any(|phrase| phrase.split(' ').any(|part| part == word))
}

/// Folded, with every mark a space, so that a word is found between spaces.
fn spaced(text: &str) -> String {
    fold(text).chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect()
}

fn has(spaced: &str, word: &str) -> bool {
    if word.chars().any(is_wide) { spaced.contains(word) } else { spaced.contains(&format!(" {word} ")) }
}

/// How well a sentence fits the kind that is asked for: 1 where it has something of the kind which the question does
/// not have itself, 0 where it has not; for kinds that do not show, 0.5.
#[must_use]
pub fn fit(asked: Asked, question: &str, sentence: &str) -> f64 {
    let yes = |is_there: bool| if is_there { 1.0 } else { 0.0 };
    match asked {
        Asked::Time => yes(numbers(sentence).any(|n| !numbers(question).any(|q| q == n))),
        Asked::Amount => yes(numbers(sentence).any(|n| !numbers(question).any(|q| q == n)) || has_numeral(sentence)),
        Asked::Name | Asked::Place => yes(has_new_name(question, sentence)),
        Asked::Reason => yes(REASONS.iter().any(|word| has(&format!(" {} ", spaced(sentence)), word))),
        Asked::Way => yes(WAYS.iter().any(|word| has(&format!(" {} ", spaced(sentence)), word))),
        Asked::Anything => 0.5,
    }
}

/// Whether a year or a month stands in it, which a question for a time most often means.
#[must_use]
pub fn has_year(sentence: &str) -> bool {
    let is_year = |n: &str| n.len() == 4 && (n.starts_with('1') || n.starts_with("20"));
    numbers(&fold(sentence)).any(is_year) || ["世紀", "世纪", "年代"].iter().any(|word| sentence.contains(word))
}

/// The numbers of a text, as digits.
pub fn numbers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_numeric()).filter(|digits| !digits.is_empty())
}

/// Numbers that are written as words.
fn has_numeral(sentence: &str) -> bool {
    const NUMERALS: &[&str] = &[
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "hundred",
        "thousand",
        "million",
        "billion",
        "dozen",
        "half",
        "zwei",
        "drei",
        "vier",
        "fünf",
        "sechs",
        "sieben",
        "acht",
        "neun",
        "zehn",
        "hundert",
        "tausend",
        "millionen",
        "milliarden",
        "deux",
        "trois",
        "quatre",
        "dos",
        "tres",
        "cuatro",
    ];
    let spaced = format!(" {} ", spaced(sentence));
    NUMERALS.iter().any(|word| has(&spaced, word))
        || sentence
            .contains(['一', '二', '三', '四', '五', '六', '七', '八', '九', '十', '百', '千', '万', '億', '亿', '两'])
}

/// A capitalised word inside the sentence that the question does not have; in scripts without capitals a foreign word
/// or a middle dot between names.
fn has_new_name(question: &str, sentence: &str) -> bool {
    let mut words = sentence.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let first = words.next().unwrap_or_default();
    let is_wide_text = sentence.chars().any(is_wide);
    let is_new = |word: &str| !question.contains(word);
    let named = words.any(|word| word.chars().next().is_some_and(char::is_uppercase) && is_new(word));
    named || (is_wide_text && (is_new(first) || sentence.contains(['・', '·', '氏'])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_words_show_what_is_asked_for() {
        for (question, kind) in [
            ("How many points did they give up?", Asked::Amount),
            ("In what year was it built?", Asked::Time),
            ("Wann wurde es gebaut?", Asked::Time),
            ("Who wrote the book?", Asked::Name),
            ("日本で梅雨がないのは北海道とどこか。", Asked::Place),
            ("黑豹队的防守丢了多少分？", Asked::Amount),
            ("Why does it fail?", Asked::Reason),
            ("ゾウガメの寿命", Asked::Anything),
            ("Whoever", Asked::Anything),
        ] {
            assert_eq!(asked(question), kind, "{question}");
        }
    }

    #[test]
    fn a_number_of_the_question_is_no_answer() {
        let question = "How many sacks in 2015?";
        assert_eq!(fit(Asked::Amount, question, "In 2015 they had 24 of them."), 1.0);
        assert_eq!(fit(Asked::Amount, question, "In 2015 there was rain."), 0.0);
        assert_eq!(fit(Asked::Name, "Who wrote it?", "It was written by Ada Lovelace."), 1.0);
        assert_eq!(fit(Asked::Name, "Who wrote it?", "It was written long ago."), 0.0);
    }
}
