//! Whether a text denies something. Words are looked up as whole words, and in Chinese and Japanese as strings, after the
//! longer words that only contain them are taken away.

use rust_stemmers::Algorithm;

use super::super::query::fold;
use super::super::sentences::is_wide;
use super::language;

/// Words that deny, in the languages of `language.rs`, with the Nordic languages, Finnish, Russian, Turkish, Hungarian and
/// Romanian.
const WORDS: &str = "not never cannot nor neither without no none nobody nothing nowhere hardly scarcely seldom rarely \
    nicht nichts kein keine keinen keiner keinem keines nie niemals niemand nirgends ohne weder kaum \
    pas jamais aucun aucune sans rien \
    nunca jamás ningún ninguno ninguna nadie tampoco \
    non nessun nessuno nessuna niente senza \
    não nenhum nenhuma ninguém nem \
    niet geen nooit zonder niets niemand nergens \
    inte ej ingen inget inga aldrig ingenting ikke aldri uden uten intet ingenting \
    eivät eikä emme ilman koskaan \
    не нет никогда без нельзя никто ничего ни никакой никакая никакие \
    değil değildir yok yoktur \
    nincs nincsenek sem soha nélkül \
    nu niciodată fără nici";

/// Words that deny in some languages and mean something else in others.
const WORDS_OF: &[(&str, &[Language])] = &[
    ("ne", &[Language::French, Language::Hungarian]),
    ("ni", &[Language::French, Language::Spanish]),
    ("nada", &[Language::Spanish, Language::Portuguese]),
    ("sin", &[Language::Spanish]),
    ("sem", &[Language::Portuguese, Language::Hungarian]),
    ("mai", &[Language::Italian]),
    ("utan", &[Language::Swedish]),
    ("ei", &[Language::Finnish]),
];
/// Words of [`WORDS`] that mean something else in these languages.
const NOT_IN: &[(&str, &[Language])] = &[
    ("no", &[Language::Portuguese]),
    ("non", &[Language::English]),
    ("pas", &[Language::Dutch, Language::Danish]),
    ("ej", &[Language::Spanish]),
    ("nu", &[Language::Dutch, Language::Swedish, Language::Danish]),
    ("nie", &[Language::French]),
];
/// Endings of verbs that deny, in Turkish.
const TURKISH_ENDINGS: [&str; 8] = ["maz", "mez", "madı", "medi", "mıyor", "miyor", "muyor", "müyor"];

/// Words that deny only together.
const PAIRS: [(&str, &str); 6] =
    [("fail", "to"), ("fails", "to"), ("failed", "to"), ("failing", "to"), ("is", "rare"), ("are", "rare")];

/// Phrases that have a word of denial and deny nothing.
const AFFIRMING: &str = "not only, not just, not merely, not least, not until, no more than, no less than, no fewer than, \
    no later than, no earlier than, not more than, not less than, no doubt, without doubt, without a doubt, \
    whether or not, or not, nothing but, sans serif, nicht nur, nicht zuletzt, nicht mehr als, \
    nicht weniger als, ohne zweifel, pas à pas, pas seulement, non seulement, sans doute, sans aucun doute, \
    no solo, no sólo, no solamente, no más de, no menos de, sin duda, sin embargo, non solo, non soltanto, \
    senza dubbio, não só, não apenas, sem dúvida, niet alleen, inte bara, ikke kun, ikke bare, не только, \
    nem csak";

/// In Japanese: strings that deny.
const JAPANESE: &str = "ない なかった なければ ません でなく はなく がなく もなく ことなく しなく られなく できず せず 無い \
    無く 不可能 不要 不必要 不能";
/// In Japanese: words that have such a string and deny nothing.
const JAPANESE_AFFIRMING: &str = "なければならない なければなりません なければならなかった なければいけない なければいけません \
    なくてはならない なくてはなりません なくてはいけない ないといけない ざるを得ない ざるを得ません \
    ざるを得なかった かもしれない かもしれません かも知れない かも知れません に違いない に違いありません \
    にほかならない に他ならない に過ぎない にすぎない に過ぎません にすぎません しかない だけでなく \
    だけではなく ばかりでなく ばかりか のみでなく のみならず ではないか じゃないか ないし 少ない 少なく \
    少なかった すくない すくなく 危ない 危なく あぶない 汚ない 切ない 幼ない はかない 間もなく まもなく \
    なんとなく 何となく 限りなく 限りない 間違いなく 間違いない 絶え間なく もったいない とんでもない \
    何気ない 何気なく 必要不可欠 不可欠";
/// In Japanese: kana before the ending `ず` of a verb.
const BEFORE_ZU: &str = "かがさたなばまらわせれえけべめてねげへ";
const JAPANESE_ZU_AFFIRMING: &str = "相変わらず あいかわらず かかわらず 関わらず 拘わらず 拘らず のみならず 少なからず とりあえず ひとまず \
    まず";

/// In Chinese: strings that deny.
const CHINESE: &str = "不 没有 沒有 没能 沒能 没法 没人 没被 并没 並沒 从没 還沒 还没 无法 無法 无需 無需 无须 無須 毫无 毫無 \
    并无 並無 并非 並非 绝非 絕非 未 请勿 請勿";
/// In Chinese: words that have such a string and deny nothing.
const CHINESE_AFFIRMING: &str = "不得不 不可或缺 必不可少 不可缺少 差不多 不仅 不僅 不但 不只 不单 不單 不止 不断 不斷 不同 不少 不久 \
    不过 不過 不管 不论 不論 不锈 不鏽 不错 不錯 不幸 不然 不动产 不動產 不禁 不惜 不妨 不免 不由 不良 不满 \
    不滿 不足 不安 不朽 不等 不时 不時 不已 不如 不均 不一 不便 不利 不愧 不亚于 不亞於 不超过 不超過 \
    不少于 不低于 不多于 未来 未來 未满 未滿 未婚 未知 没有不 無不 无不";

/// In Korean: words that deny if they stand alone.
const KOREAN_WORDS: [&str; 3] = ["안", "못", "결코"];
/// In Korean: what a word that denies begins with.
const KOREAN_STARTS: &str =
    "아니 아닙 아닌 아닐 아님 안나 안되 안된 안될 안됩 안돼 안하 안한 안했 안좋 못하 못한 못할 못합 못함 못해 못했";
/// In Korean: what a word that denies has in it.
const KOREAN_PARTS: [char; 2] = ['않', '없'];
const KOREAN_AFFIRMING: &str = "뿐만 아니라, 뿐 아니라, 뿐만아니라, 않으면 안, 지 않을 수 없, 끊임없, 틀림없, 어김없, 변함없, 상관없이, \
    관계없이, 수없이, 수없는, 더할 나위 없";

/// A language of the stemmer, in a form that tables can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    English,
    French,
    Spanish,
    Italian,
    Portuguese,
    Dutch,
    Danish,
    Swedish,
    Finnish,
    Hungarian,
    Turkish,
    Other,
}

impl Language {
    fn of(text: &str) -> Self {
        match language::of(text) {
            Algorithm::English => Self::English,
            Algorithm::French => Self::French,
            Algorithm::Spanish => Self::Spanish,
            Algorithm::Italian => Self::Italian,
            Algorithm::Portuguese => Self::Portuguese,
            Algorithm::Dutch => Self::Dutch,
            Algorithm::Danish | Algorithm::Norwegian => Self::Danish,
            Algorithm::Swedish => Self::Swedish,
            Algorithm::Finnish => Self::Finnish,
            Algorithm::Hungarian => Self::Hungarian,
            Algorithm::Turkish => Self::Turkish,
            _ => Self::Other,
        }
    }
}

/// Whether a text denies something.
#[must_use]
pub fn denies(text: &str) -> bool {
    let folded = fold(text).replace('’', "'");
    let has_hangul = folded.chars().any(|c| matches!(u32::from(c), 0xAC00..=0xD7A3));
    denies_in_words(&folded)
        || has_hangul && denies_in_korean(&folded)
        || folded.chars().any(is_wide) && !has_hangul && denies_without_spaces(&folded)
}

fn denies_in_words(folded: &str) -> bool {
    let language = Language::of(folded);
    let mut plain = spaced(folded);
    for phrase in AFFIRMING.split(", ") {
        plain = plain.replace(&format!(" {phrase} "), " ");
    }
    let words: Vec<&str> = plain.split(' ').filter(|word| !word.is_empty()).collect();
    words.iter().enumerate().any(|(at, word)| {
        let next = words.get(at + 1).copied().unwrap_or_default();
        // `No. 5` is a number.
        let is_number = *word == "no" && next.starts_with(|c: char| c.is_ascii_digit());
        let word = if language == Language::French && word.starts_with("n'") { "ne" } else { word };
        // `Il ne contient que trois œufs` says that it contains three.
        let is_only = word == "ne" && words[at..].iter().any(|later| *later == "que" || later.starts_with("qu'"));
        !is_number && !is_only && (is_denial(word, language) || PAIRS.contains(&(word, next)))
    })
}

fn is_denial(word: &str, language: Language) -> bool {
    let is_in = |list: &[(&str, &[Language])]| list.iter().any(|(one, of)| *one == word && of.contains(&language));
    let is_turkish = language == Language::Turkish && TURKISH_ENDINGS.iter().any(|ending| word.ends_with(ending));
    let is_listed = WORDS.split_whitespace().any(|one| one == word) && !is_in(NOT_IN);
    is_listed || is_in(WORDS_OF) || is_turkish || word.ends_with("n't")
}

/// Every mark but the apostrophe is a space, and letters of other scripts are words of their own.
fn spaced(folded: &str) -> String {
    let mut out = String::from(" ");
    let mut was_wide = false;
    for c in folded.chars() {
        let is_letter = c.is_alphanumeric() || c == '\'';
        if (!is_letter || is_wide(c) != was_wide) && !out.ends_with(' ') {
            out.push(' ');
        }
        if is_letter {
            out.push(c);
        }
        was_wide = is_wide(c);
    }
    if !out.ends_with(' ') {
        out.push(' ');
    }
    out
}

fn denies_in_korean(folded: &str) -> bool {
    let plain = without(folded, KOREAN_AFFIRMING.split(", "));
    plain.split(|c: char| !c.is_alphanumeric()).any(|word| {
        KOREAN_WORDS.contains(&word)
            || KOREAN_STARTS.split(' ').any(|start| word.starts_with(start))
            || word.contains(KOREAN_PARTS)
    })
}

fn denies_without_spaces(folded: &str) -> bool {
    if !folded.chars().any(|c| matches!(u32::from(c), 0x3040..=0x30FF)) {
        let plain = without(folded, CHINESE_AFFIRMING.split(' '));
        return CHINESE.split(' ').any(|denial| plain.contains(denial));
    }
    let plain = without(folded, JAPANESE_AFFIRMING.split(' '));
    JAPANESE.split(' ').any(|denial| plain.contains(denial))
        || ends_a_verb_in_zu(&without(&plain, JAPANESE_ZU_AFFIRMING.split(' ')))
}

/// A verb that ends in `ず`, at a comma, at the end or before `に`; in other places it is a part of a word.
fn ends_a_verb_in_zu(text: &str) -> bool {
    let chars: Vec<char> = text.chars().collect();
    chars.windows(2).enumerate().any(|(at, pair)| {
        let next = chars.get(at + 2).copied().unwrap_or('。');
        pair[1] == 'ず' && BEFORE_ZU.contains(pair[0]) && matches!(next, '、' | '。' | 'に')
    })
}

fn without<'a>(text: &str, strings: impl Iterator<Item = &'a str>) -> String {
    strings.fold(text.to_owned(), |text, string| text.replace(string, " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denials_are_found_in_every_language_and_not_inside_other_words() {
        let denied = [
            "There is no evidence that tea helps.",
            "None of the pods were lost.",
            "Nothing was found.",
            "It isn’t done.",
            "The trial failed to show a benefit.",
            "Es gibt keinen Beleg dafür.",
            "Mit keinem der Mittel gelang es.",
            "Il n'y a aucun risque.",
            "Le client ne répond plus.",
            "El servidor no responde.",
            "Funciona sin red y es la mejor.",
            "Il server non risponde.",
            "O servidor não responde.",
            "Er is geen bewijs.",
            "Det är inte sant.",
            "Det er ikke sandt.",
            "Сервер не отвечает.",
            "Bu doğru değil.",
            "Ez nem igaz, nincs bizonyíték.",
            "Nu este adevărat.",
            "効果はない。",
            "効果は確認されなかった。",
            "眠らずに働いた。",
            "再起動せず、続ける。",
            "設定は不要です。",
            "这不是真的。",
            "他没有回来。",
            "尚未完成。",
            "무료가 아니다.",
            "비가 안 온다.",
            "효과가 없다.",
            "작동하지 않는다.",
        ];
        for text in denied {
            assert!(denies(text), "{text}");
        }
        let affirmed = [
            "Not only bears sleep.",
            "Whether or not it rains, it runs.",
            "It is No. 5 of the list.",
            "A sans serif font.",
            "Nicht nur Bären schlafen.",
            "Le paquet ne contient que trois fichiers.",
            "Non seulement il dort, il rêve.",
            "No solo duerme, también sueña.",
            "A torre fica no centro da cidade.",
            "No more than five pods run.",
            "It is a non stop flight.",
            "必ず再起動する。",
            "雨は少ない。",
            "まず、設定を開く。",
            "走らなければならない。",
            "水は必要不可欠である。",
            "増えるかもしれない。",
            "東京だけでなく大阪も暑い。",
            "水準はわずかに上がった。",
            "人口不断增长。",
            "两国文化不同。",
            "他不得不离开。",
            "未来很美好。",
            "안전한 방법이다.",
            "안내를 따른다.",
            "비뿐만 아니라 눈도 온다.",
            "끊임없이 변한다.",
        ];
        for text in affirmed {
            assert!(!denies(text), "{text}");
        }
    }
}
