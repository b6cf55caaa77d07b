//! What the block model sees: one row of numbers for each block of a page.
//!
//! The order of a row is part of the trained model; `scripts/train-extraction.py` reads it through the same code, so
//! the two cannot drift apart. Nothing here depends on the site or the page's address.

mod phrases;

use crate::blocks::{Block, Blocks, Kind, Scope, TAGS, Tag};
use crate::centre;
use crate::marks::GROUPS;
use crate::numbers::{count, log};
use crate::shingles::{Repeats, Shingles, word_hashes};

use phrases::stock_phrases;

/// What is known about the page as a whole.
pub struct PageFacts<'a> {
    pub title: &'a str,
    pub description: &'a str,
    /// What another extractor took for the main text; empty if it found none.
    pub second_opinion: &'a str,
    /// The whole text as the structured data have it; empty if they have none.
    pub declared_body: &'a str,
    /// What the page calls itself: `og:type` and the types of its structured data, in lower case.
    pub declared_types: &'a str,
}

/// Words of `declared_types` that the model knows. The order is part of the trained model.
const DECLARED: [&str; 8] =
    ["article", "posting", "product", "itemlist", "collectionpage", "website", "faqpage", "recipe"];

struct Measured {
    words: Vec<u64>,
    chars: f32,
    in_base: f32,
    in_declared: f32,
    link_share: f32,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    chars: f32,
    link_chars: f32,
    base_chars: f32,
    blocks: f32,
    long_blocks: f32,
}

/// One row a block.
pub fn rows(page: &Blocks, facts: &PageFacts<'_>) -> Vec<Vec<f32>> {
    let base = Shingles::of(facts.second_opinion);
    let declared = (!facts.declared_body.is_empty()).then(|| Shingles::of(facts.declared_body));
    let measured: Vec<Measured> = page.blocks.iter().map(|block| measure(block, &base, declared.as_ref())).collect();
    let repeats = Repeats::of(measured.iter().map(|m| m.words.as_slice()));
    // What the page itself calls its text is the better hint, where there is such a thing.
    let hints: Vec<f32> = measured.iter().map(|m| if declared.is_some() { m.in_declared } else { m.in_base }).collect();
    let places = centre::rows(page, &hints);
    let kind_of_page = kind_of_page(page, facts, &measured);
    let sums = scope_sums(page, &measured);
    let alike = alike_siblings(page);
    let whole = whole_page(page, facts, &measured);
    (0..page.blocks.len())
        .map(|at| {
            let mut row = Vec::with_capacity(256);
            own(&mut row, page, &measured, at, &whole);
            around(&mut row, &measured, page, at);
            containers(&mut row, page, &sums, &alike, at);
            row.extend_from_slice(&whole.row);
            row.push(measured[at].in_declared);
            row.extend(repeats.shares(at, &measured[at].words));
            row.push(flag(is_for_machines(&page.blocks[at].text)));
            row.extend(places[at]);
            row.extend(kind_of_page);
            row
        })
        .collect()
}

fn measure(block: &Block, base: &Shingles, declared: Option<&Shingles>) -> Measured {
    let words = word_hashes(&block.text);
    let chars = count(block.text.chars().count());
    Measured {
        in_base: base.share_of(&words),
        in_declared: declared.map_or(-1.0, |declared| declared.share_of(&words)),
        link_share: count(block.link_chars) / count(block.text.len().max(1)),
        words,
        chars,
    }
}

fn scope_sums(page: &Blocks, measured: &[Measured]) -> Vec<Sum> {
    let mut sums = vec![Sum::default(); page.scopes.len()];
    for (block, m) in page.blocks.iter().zip(measured) {
        let sum = &mut sums[block.scope];
        sum.chars += m.chars;
        sum.link_chars += m.chars * m.link_share;
        sum.base_chars += m.chars * m.in_base;
        sum.blocks += 1.0;
        sum.long_blocks += f32::from(u8::from(m.chars > 80.0));
    }
    // A scope is opened after the one around it, so one pass from the back adds up the tree.
    for id in (0..sums.len()).rev() {
        if let Some(parent) = page.scopes[id].parent {
            let inner = sums[id];
            let outer = &mut sums[parent];
            outer.chars += inner.chars;
            outer.link_chars += inner.link_chars;
            outer.base_chars += inner.base_chars;
            outer.blocks += inner.blocks;
            outer.long_blocks += inner.long_blocks;
        }
    }
    sums
}

/// For each scope, how many siblings look like it.
fn alike_siblings(page: &Blocks) -> Vec<f32> {
    let mut counts = foldhash::HashMap::default();
    for scope in &page.scopes {
        *counts.entry((scope.parent, scope.likeness)).or_insert(0usize) += 1;
    }
    page.scopes.iter().map(|scope| count(counts[&(scope.parent, scope.likeness)])).collect()
}

struct Whole<'a> {
    row: Vec<f32>,
    title: Shingles,
    description: Shingles,
    first_base: usize,
    last_base: usize,
    texts_seen: foldhash::HashMap<&'a str, usize>,
    chars_before: Vec<f32>,
    base_before: Vec<f32>,
    chars: f32,
    base_chars: f32,
    first_h1: usize,
}

fn whole_page<'a>(page: &'a Blocks, facts: &PageFacts<'_>, measured: &[Measured]) -> Whole<'a> {
    let (mut chars, mut base_chars) = (0.0, 0.0);
    let (mut chars_before, mut base_before) = (Vec::new(), Vec::new());
    let mut texts_seen = foldhash::HashMap::default();
    let (mut first_base, mut last_base) = (usize::MAX, 0);
    for (at, (m, block)) in measured.iter().zip(&page.blocks).enumerate() {
        chars_before.push(chars);
        base_before.push(base_chars);
        chars += m.chars;
        base_chars += m.chars * m.in_base;
        *texts_seen.entry(block.text.as_str()).or_insert(0) += 1;
        if m.in_base > 0.7 && m.words.len() >= 5 {
            first_base = first_base.min(at);
            last_base = at;
        }
    }
    let mut row: Vec<f32> = DECLARED.iter().map(|word| flag(facts.declared_types.contains(word))).collect();
    let links: f32 = measured.iter().map(|m| m.chars * m.link_share).sum();
    let paragraphs: f32 = page
        .blocks
        .iter()
        .zip(measured)
        .filter(|(block, m)| block.kind == Kind::Paragraph && m.chars > 80.0)
        .map(|(_, m)| m.chars)
        .sum();
    let prices = page.blocks.iter().filter(|block| is_price(&block.text)).count();
    let headings = |level| count(page.blocks.iter().filter(|block| block.kind == Kind::Heading(level)).count());
    let articles = page.scopes.iter().filter(|scope| scope.tag == Tag::Article).count();
    row.extend([
        log(chars),
        log(count(measured.len())),
        base_chars / chars.max(1.0),
        links / chars.max(1.0),
        paragraphs / chars.max(1.0),
        log(base_chars),
        log(count(prices)),
        headings(1),
        log(headings(2)),
        log(headings(3)),
        log(count(articles)),
    ]);
    let first_h1 = page.blocks.iter().position(|b| b.kind == Kind::Heading(1)).unwrap_or(usize::MAX);
    Whole {
        row,
        title: Shingles::of(facts.title),
        description: Shingles::of(facts.description),
        first_base,
        last_base,
        texts_seen,
        chars_before,
        base_before,
        chars,
        base_chars,
        first_h1,
    }
}

/// Columns of `kind_of_page`.
pub const KIND: usize = KINDS_DECLARED.len() + KINDS_MARKED.len() + 3;
/// More words of `declared_types`, and the groups of marks whose share of a page's text tells what kind of page it is:
/// comments are the text of a forum and none of an article's. The order is part of the trained model.
const KINDS_DECLARED: [&str; 5] = ["discussionforum", "qapage", "question", "howto", "event"];
/// Those of `marks.rs` about content, articles, comments, products, specifications, reviews and lists.
const KINDS_MARKED: [u32; 7] = [0, 1, 3, 22, 23, 24, 25];

fn kind_of_page(page: &Blocks, facts: &PageFacts<'_>, measured: &[Measured]) -> [f32; KIND] {
    let mut row = [0.0; KIND];
    let (declared, rest) = row.split_at_mut(KINDS_DECLARED.len());
    for (value, word) in declared.iter_mut().zip(KINDS_DECLARED) {
        *value = flag(facts.declared_types.contains(word));
    }
    // What stands around a scope is marked for it too; a scope is opened after the one around it.
    let mut marks: Vec<u32> = Vec::with_capacity(page.scopes.len());
    let mut posts = foldhash::HashMap::default();
    for scope in &page.scopes {
        marks.push(scope.marks | scope.parent.map_or(0, |id| marks[id]));
    }
    let (mut plain, mut long) = (0.0, 0.0);
    for (block, m) in page.blocks.iter().zip(measured) {
        let chars = m.chars * (1.0 - m.link_share);
        plain += chars;
        if m.chars > 80.0 {
            long += chars;
            *posts.entry(page.template(block)).or_insert(0.0) += chars;
        }
        for (value, group) in rest.iter_mut().zip(KINDS_MARKED) {
            *value += if marks[block.scope] & (1 << group) == 0 { 0.0 } else { chars };
        }
    }
    for value in rest.iter_mut().take(KINDS_MARKED.len()) {
        *value /= plain.max(1.0);
    }
    let most = posts.values().copied().fold(0.0, f32::max);
    rest[KINDS_MARKED.len()] = long / plain.max(1.0);
    rest[KINDS_MARKED.len() + 1] = most / long.max(1.0);
    rest[KINDS_MARKED.len() + 2] = log(count(posts.len()));
    row
}

fn own(row: &mut Vec<f32>, page: &Blocks, measured: &[Measured], at: usize, whole: &Whole<'_>) {
    let (block, m) = (&page.blocks[at], &measured[at]);
    row.extend([m.in_base, log(m.chars), log(count(m.words.len())), m.link_share]);
    row.extend([count(block.links), count(block.bold_chars) / count(block.text.len().max(1))]);
    row.extend(letters(&block.text, m));
    row.extend(kinds(block.kind));
    row.extend([
        whole.title.share_of(&m.words),
        whole.description.share_of(&m.words),
        count(whole.texts_seen.get(block.text.as_str()).copied().unwrap_or(1)),
        flag(is_price(&block.text)),
    ]);
    let n = count(measured.len());
    row.extend([
        count(at) / n,
        whole.chars_before[at] / whole.chars.max(1.0),
        whole.base_before[at] / whole.base_chars.max(1.0),
        signed_distance(at, whole.first_base),
        signed_distance(at, whole.last_base),
        signed_distance(at, whole.first_h1),
    ]);
}

fn signed_distance(at: usize, to: usize) -> f32 {
    if to == usize::MAX {
        return -50.0;
    }
    let (at, to) = (count(at), count(to));
    (at - to).clamp(-50.0, 50.0)
}

fn letters(text: &str, m: &Measured) -> [f32; 12] {
    let words = count(m.words.len().max(1));
    let (mut enders, mut commas, mut upper, mut digits, mut odd, mut letters) = (0, 0, 0, 0, 0, 0);
    for c in text.chars() {
        match c {
            '.' | '!' | '?' | '。' | '！' | '？' => enders += 1,
            ',' | ';' | '、' | '，' => commas += 1,
            '|' | '•' | '›' | '»' | '/' | '·' | '©' | '→' | '★' | '+' => odd += 1,
            '$' | '€' | '£' | '¥' | '%' => digits += 1,
            _ if c.is_ascii_digit() => digits += 1,
            _ if c.is_uppercase() => upper += 1,
            _ => {}
        }
        letters += usize::from(c.is_alphabetic());
    }
    let last = text.chars().next_back().unwrap_or(' ');
    let first = text.chars().next().unwrap_or(' ');
    let starts = |words: &[&str]| flag(words.iter().any(|word| begins_with(text, word)));
    [
        count(enders) / words,
        count(commas) / words,
        count(upper) / count(letters.max(1)),
        count(digits) / m.chars.max(1.0),
        count(odd) / words,
        count(letters) / words,
        flag(matches!(last, '.' | '!' | '?' | '。' | '”' | '"' | '！' | '？')),
        flag(matches!(last, ':' | '：')),
        flag(first.is_lowercase()),
        stock_phrases(text),
        starts(&["by ", "posted", "published", "updated"]),
        starts(&["photo", "image", "read ", "see also", "related"]),
    ]
}

fn begins_with(text: &str, word: &str) -> bool {
    text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

/// A short text with an amount of money in it.
fn is_price(text: &str) -> bool {
    text.len() < 40 && text.contains(['$', '€', '£', '¥', '₹', '₩']) && text.contains(|c: char| c.is_ascii_digit())
}

/// Nothing but a web address or a moment, as machines write them.
fn is_for_machines(text: &str) -> bool {
    !text.contains(' ') && (text.starts_with("http") || text.starts_with("www.") || is_moment(text))
}

fn is_moment(text: &str) -> bool {
    text.len() >= 16 && text.starts_with(|c: char| c.is_ascii_digit()) && text.contains('T') && text.contains(':')
}

fn kinds(kind: Kind) -> [f32; 10] {
    let level = if let Kind::Heading(level) = kind { f32::from(level) } else { 0.0 };
    [
        flag(kind == Kind::Paragraph),
        flag(level > 0.0),
        level,
        flag(kind == Kind::Item),
        flag(kind == Kind::Row),
        flag(kind == Kind::Quote),
        flag(kind == Kind::Code),
        flag(kind == Kind::Caption),
        flag(kind == Kind::Term),
        flag(kind == Kind::Control),
    ]
}

fn around(row: &mut Vec<f32>, measured: &[Measured], page: &Blocks, at: usize) {
    for shift in [-1_isize, 1, -2, 2] {
        match at.checked_add_signed(shift).and_then(|near| measured.get(near).map(|m| (m, near))) {
            Some((m, near)) => row.extend([
                m.in_base,
                log(m.chars),
                m.link_share,
                flag(matches!(page.blocks[near].kind, Kind::Heading(_))),
                flag(page.blocks[near].scope == page.blocks[at].scope),
            ]),
            None => row.extend([-1.0; 5]),
        }
    }
    // A wider window tells an island of text from the middle of an article.
    for (before, after) in [(6, 0), (0, 6)] {
        let near = &measured[at.saturating_sub(before)..(at + after + 1).min(measured.len())];
        let chars: f32 = near.iter().map(|m| m.chars).sum::<f32>().max(1.0);
        row.extend([
            near.iter().map(|m| m.chars * m.in_base).sum::<f32>() / chars,
            near.iter().map(|m| m.chars * m.link_share).sum::<f32>() / chars,
            log(chars),
        ]);
    }
}

fn containers(row: &mut Vec<f32>, page: &Blocks, sums: &[Sum], alike: &[f32], at: usize) {
    let block = &page.blocks[at];
    let ids: Vec<usize> = page.chain_ids(block.scope).collect();
    let chain: Vec<&Scope> = ids.iter().map(|id| &page.scopes[*id]).collect();
    let mut near = [0.0_f32; GROUPS + TAGS];
    for (distance, scope) in chain.iter().enumerate() {
        let value = 1.0 / count(distance + 1);
        let mut marks = scope.marks;
        while marks != 0 {
            let near = &mut near[marks.trailing_zeros() as usize];
            *near = near.max(value);
            marks &= marks - 1;
        }
        let tag = GROUPS + scope.tag as usize;
        if near[tag] == 0.0 {
            near[tag] = value;
        }
    }
    row.extend(near);
    row.push(flag(page.scopes[block.scope].is_hidden));
    row.push(count(page.scopes[block.scope].depth));
    row.push(ids.iter().take(5).map(|id| alike[*id]).fold(0.0, f32::max));
    row.push(ids.iter().take(2).map(|id| alike[*id]).fold(0.0, f32::max));
    for level in 0..4 {
        let id = ids.get(level + 1).or(ids.last()).copied().unwrap_or(block.scope);
        let sum = sums[id];
        let chars = sum.chars.max(1.0);
        row.extend([
            log(sum.chars),
            sum.link_chars / chars,
            sum.base_chars / chars,
            sum.long_blocks / sum.blocks.max(1.0),
            log(sum.blocks),
        ]);
    }
}

fn flag(is: bool) -> f32 {
    f32::from(u8::from(is))
}
