//! Words that turn a statement around, and words that say which way something goes. Small on purpose: every word here
//! can be read and argued about.

use std::{collections::HashMap, sync::LazyLock};

/// Words too common to tell one statement from another.
const COMMON: &str = "the a an of in to and or for with by on at from as is are was were be been being that this these \
    those it its their than then which who whom have has had do does did can could may might will would should also \
    into between among both such we our they there here other some any each all but if so during after before under \
    over der die das den dem des ein eine und oder von mit für auf im in zu ist sind le la les un une des et ou de du \
    en el los las una y o del";

const DENIALS: &str = "no not nor never without cannot neither none lack lacks lacked lacking fail fails failed unable \
    absence absent independent unrelated unaffected unchanged little hardly rarely dispensable insufficient t \
    nicht kein keine keinen keiner keinem ohne nie niemals weder pas sans aucun aucune jamais ne sin nunca ningún ninguna";

/// Denials in scripts without spaces, and Korean.
const DENIALS_INSIDE: [&str; 16] = [
    "ない",
    "なかった",
    "ません",
    "ませんでした",
    "せず",
    "無い",
    "不",
    "没",
    "沒",
    "未",
    "않",
    "없",
    "못",
    "아니",
    "아닙",
    "無効",
];

const UP: &str = "increase increases increased increasing higher greater more elevated enhance enhances enhanced enhancing \
    promote promotes promoted promoting improve improves improved upregulated upregulation upregulates raise raises raised \
    activate activates activated activation induce induces induced stimulate stimulates longer better positive positively \
    gain up rise rises accelerates strengthens high large larger benefit beneficial faster steigt steigert erhöht mehr höher";

const DOWN: &str = "decrease decreases decreased decreasing lower lowers lowered less fewer reduced reduce reduces reducing \
    reduction inhibit inhibits inhibited inhibition impair impairs impaired suppress suppresses suppressed downregulated \
    downregulation downregulates decline declines diminished diminish loss attenuate attenuates attenuated block blocks \
    blocked prevents prevent prevented shorter worse negative negatively protect protects down fall weakens low small \
    smaller poor harmful delays slower senkt sinkt verringert weniger niedriger verliert";

const UP_INSIDE: [&str; 8] = ["上が", "増え", "増加", "高ま", "늘", "증가", "높아", "增加"];
const DOWN_INSIDE: [&str; 10] = ["下が", "減ら", "減少", "減る", "低下", "失", "줄", "감소", "낮아", "降低"];

/// What one word is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cue {
    pub is_common: bool,
    pub denies: bool,
    pub goes_up: bool,
    pub goes_down: bool,
}

/// Every listed word. Each word of each claim is looked up, so the lists are split once.
static CUES: LazyLock<HashMap<&'static str, Cue>> = LazyLock::new(|| {
    let mut cues: HashMap<_, Cue> = HashMap::new();
    let mut mark = |words: &'static str, mark: fn(&mut Cue)| {
        for word in words.split_whitespace() {
            mark(cues.entry(word).or_default());
        }
    };
    mark(COMMON, |cue| cue.is_common = true);
    mark(DENIALS, |cue| cue.denies = true);
    mark(UP, |cue| cue.goes_up = true);
    mark(DOWN, |cue| cue.goes_down = true);
    cues
});

impl Cue {
    /// Of a word in lower case.
    pub fn of(word: &str) -> Self {
        CUES.get(word).copied().unwrap_or_default()
    }

    /// Of a whole text in a script without spaces.
    pub fn inside(text: &str) -> Self {
        let has = |list: &[&str]| list.iter().any(|known| text.contains(known));
        Self { is_common: false, denies: has(&DENIALS_INSIDE), goes_up: has(&UP_INSIDE), goes_down: has(&DOWN_INSIDE) }
    }
}
