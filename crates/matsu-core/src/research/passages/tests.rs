//! Passages in their bounds, under their headings, and without repeats.

use proptest::prelude::*;

use super::*;

fn document(text: String, headings: Vec<Heading>) -> Document {
    Document { text, headings, ..Document::default() }
}

/// Words that hardly repeat, so that no two passages are alike.
fn sentence(n: usize) -> String {
    let word = |k: usize| {
        let mut x = (n * 31 + k + 1) * 2_654_435_761 % 4_294_967_296;
        (0..7)
            .map(|_| {
                x = (x * 1_103_515_245 + 12_345) % 2_147_483_648;
                char::from(b'a' + (x >> 16) as u8 % 26)
            })
            .collect::<String>()
    };
    format!("The {} of {} met {} near {} and {}.", word(0), word(1), word(2), word(3), word(4))
}

#[test]
fn passages_are_between_their_bounds_and_end_with_a_sentence() {
    let japanese =
        |n: usize| format!("これは{n}番目の文で、待ち行列の{}と通知の{}について書いています。", n * 31, n * 17);
    let korean = |n: usize| format!("이것은 {n}번째 문장이며 대기열 {}와 알림 {}에 대해 설명합니다. ", n * 31, n * 17);
    let texts: [(String, &[char]); 3] = [
        ((0..60).map(|n| sentence(n) + " ").collect(), &['.']),
        ((0..80).map(japanese).collect(), &['。']),
        ((0..80).map(korean).collect(), &['.']),
    ];
    for (text, stops) in texts {
        let found = passages(&document(text.clone(), Vec::new()));
        assert!(found.len() > 2, "{} passages", found.len());
        for passage in &found {
            let length = passage.text.chars().count();
            assert!((PASSAGE_CHARS_MIN..=PASSAGE_CHARS_MAX).contains(&length), "{length}: {}", passage.text);
            assert!(passage.text.ends_with(stops), "{}", passage.text);
            let at: String = text.chars().skip(passage.offset as usize).take(length).collect();
            assert_eq!(at, passage.text, "its offset points at it");
        }
    }
}

#[test]
fn a_passage_knows_the_headings_above_it() {
    let part = |from: usize| (from..from + 12).map(sentence).collect::<Vec<_>>().join(" ");
    let text = format!("Guide\n{}\nSetup\n{}\nUse\n{}", part(0), part(100), part(200));
    let heading = |level, name: &str| Heading { at: text.find(name).unwrap(), level, text: name.to_owned() };
    let headings = vec![heading(1, "Guide"), heading(2, "Setup"), heading(2, "Use")];
    let found = passages(&document(text, headings));
    let contexts: Vec<&str> = found.iter().map(|passage| passage.headings.above()).collect();
    assert!(contexts.contains(&"Guide"), "{contexts:?}");
    assert!(contexts.contains(&"Guide › Setup"), "{contexts:?}");
    assert_eq!(contexts.last(), Some(&"Guide › Use"));
}

#[test]
fn short_sections_share_a_passage_and_each_keeps_its_heading() {
    let text =
        "Settings\nAge\nDefault: 1209600. The age of a cookie.\nPath\nDefault: /. The path of a cookie.".to_owned();
    let heading = |level, name: &str| Heading { at: text.find(name).unwrap(), level, text: name.to_owned() };
    let headings = vec![heading(1, "Settings"), heading(2, "Age"), heading(2, "Path")];
    let found = passages(&document(text, headings));
    let [passage] = &found[..] else { panic!("{found:?}") };
    let above = |quote: &str| passage.headings.of_quote(&passage.text, quote, "");
    assert_eq!(above("The age of a cookie."), "Settings › Age");
    assert_eq!(above("The path of a cookie."), "Settings › Path");
    assert_eq!(passage.headings.above(), "Settings");
}

#[test]
fn repeated_passages_are_dropped() {
    let paragraph: String = (0..9).map(|n| sentence(n) + " ").collect();
    let other: String = (50..59).map(|n| sentence(n) + " ").collect();
    let text = format!("{paragraph}\n{other}\n{paragraph}");
    assert_eq!(passages(&document(text, Vec::new())).len(), 2);
}

#[test]
fn near_texts_have_near_sketches_and_others_do_not() {
    let long: String = (0..12).map(sentence).collect();
    assert!(is_near(sketch(&long), sketch(&long.replace("number 3 ", "number 3, "))));
    let other: String = (20..32).map(sentence).collect::<String>().replace("speaks", "is silent");
    assert!(!is_near(sketch(&long), sketch(&other)));
}

#[test]
fn a_sentence_without_end_is_cut() {
    let found = passages(&document("長".repeat(5_000), Vec::new()));
    assert!(found.iter().all(|passage| passage.text.chars().count() <= PASSAGE_CHARS_MAX));
}

proptest! {
    #[test]
    fn any_text_is_cut_without_loss_of_order(text in "[a-zA-Zあ-ん가-힣。.!? \\n]{0,4000}") {
        let found = passages(&document(text.clone(), Vec::new()));
        let mut last = None;
        for passage in &found {
            prop_assert!(passage.text.chars().count() <= PASSAGE_CHARS_MAX);
            prop_assert!(text.contains(&passage.text));
            prop_assert!(last.is_none_or(|last| last < passage.offset));
            last = Some(passage.offset);
        }
    }
}

#[test]
fn a_passage_that_begins_with_code_shows_that_it_does() {
    let prose = (0..8).map(sentence).collect::<Vec<_>>().join(" ");
    let code = "    fastify.register(plugin, { limit: 1. Then: 2 })";
    let text = format!("{prose}\n{code}\n{}", (20..28).map(sentence).collect::<Vec<_>>().join(" "));
    let found = passages(&document(text, Vec::new()));
    let with_code = found.iter().find(|passage| passage.text.contains("fastify")).expect("a passage with the code");
    assert!(with_code.text.lines().any(|line| line == code), "{}", with_code.text);
    assert!(with_code.text.starts_with(CODE_MARK), "{}", with_code.text);
}
