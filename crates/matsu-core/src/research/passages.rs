//! Passages: a document cut into pieces of 400 to 1200 characters, on sentence borders, each under its headings.

use std::collections::HashSet;

use super::document::{Document, Heading};
use super::headings::Headings;
use super::ranking::candidates::CODE_MARK;
use super::sentences::{Sentence, sentences};

/// A passage grows until it has this many characters.
pub const PASSAGE_CHARS_MIN: usize = 400;
/// A passage never has more.
pub const PASSAGE_CHARS_MAX: usize = 1_200;
/// Sketches that differ in at most this many of their 64 bits belong to near-duplicates.
pub const NEAR_BITS: u32 = 3;
/// What stands between two headings of a passage's context.
pub const HEADING_DIVIDER: &str = " › ";

/// A piece of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    pub text: String,
    pub headings: Headings,
    /// Characters before it in the document.
    pub offset: u32,
    pub sketch: u64,
}

/// The passages of a document, near-duplicates dropped. The last piece of a section may be shorter than the lower
/// bound if joining it to its neighbour would pass the upper one.
#[must_use]
pub fn passages(document: &Document) -> Vec<Passage> {
    let text = &document.text;
    let pieces: Vec<Sentence> = pieces(text).into_iter().flat_map(|s| cut_long(text, s)).collect();
    let paths = paths(&document.headings);
    let mut kept: Vec<Passage> = Vec::new();
    let (mut chars_before, mut measured_to) = (0_usize, 0_usize);
    for run in group(text, &pieces, &document.headings) {
        let (start, end) = (run[0].start, run[run.len() - 1].end);
        chars_before += text[measured_to..start].chars().count();
        measured_to = start;
        let body = text[start..end].to_owned();
        let sketch = sketch(&body);
        if kept.iter().any(|other| is_near(other.sketch, sketch)) {
            continue;
        }
        let offset = u32::try_from(chars_before).unwrap_or(u32::MAX);
        kept.push(Passage { text: body, headings: headings_of(&paths, start, end), offset, sketch });
    }
    kept
}

/// Sentences, and lines of code with their mark: a passage that begins with code must show that it does.
fn pieces(text: &str) -> Vec<Sentence> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split('\n') {
        if line.starts_with(CODE_MARK) && !line.trim().is_empty() {
            found.push(Sentence { start, end: start + line.trim_end().len() });
        } else {
            let inside = sentences(line).into_iter();
            found.extend(inside.map(|piece| Sentence { start: start + piece.start, end: start + piece.end }));
        }
        start += line.len() + 1;
    }
    found
}

/// Joins sentences until a passage is long enough; a heading begins a new one once there is enough.
fn group<'a>(text: &str, pieces: &'a [Sentence], headings: &[Heading]) -> Vec<&'a [Sentence]> {
    let mut runs: Vec<&[Sentence]> = Vec::new();
    let starts: HashSet<usize> = headings.iter().map(|heading| heading.at).collect();
    let mut first = 0;
    for at in 0..pieces.len() {
        let Some(next) = pieces.get(at + 1) else {
            runs.push(&pieces[first..]);
            break;
        };
        let so_far = chars(text, pieces[first].start, pieces[at].end);
        let with_next = chars(text, pieces[first].start, next.end);
        let new_section = starts.contains(&next.start) && so_far >= PASSAGE_CHARS_MIN / 2;
        // A paragraph's end is a good border once there is enough.
        let paragraph = so_far >= PASSAGE_CHARS_MIN && text[pieces[at].end..next.start].contains('\n');
        if with_next > PASSAGE_CHARS_MAX || new_section || paragraph || so_far >= PASSAGE_CHARS_MAX * 3 / 4 {
            runs.push(&pieces[first..=at]);
            first = at + 1;
        }
    }
    join_short_end(text, pieces, runs)
}

/// A tail too short to stand alone joins the passage before it, or takes sentences from it where both would not fit.
fn join_short_end<'a>(text: &str, pieces: &'a [Sentence], mut runs: Vec<&'a [Sentence]>) -> Vec<&'a [Sentence]> {
    let [.., before, last] = runs[..] else { return runs };
    let end = last[last.len() - 1].end;
    if chars(text, last[0].start, end) >= PASSAGE_CHARS_MIN {
        return runs;
    }
    let first = pieces.len() - before.len() - last.len();
    runs.truncate(runs.len() - 2);
    if chars(text, pieces[first].start, end) <= PASSAGE_CHARS_MAX {
        runs.push(&pieces[first..]);
        return runs;
    }
    let mut border = pieces.len() - last.len();
    let length = |border: usize| chars(text, pieces[border].start, end);
    while border > first + 1 && length(border) < PASSAGE_CHARS_MIN && length(border - 1) <= PASSAGE_CHARS_MAX {
        border -= 1;
    }
    runs.push(&pieces[first..border]);
    runs.push(&pieces[border..]);
    runs
}

/// A sentence that is longer than a passage may be is cut, at a space where there is one.
fn cut_long(text: &str, sentence: Sentence) -> Vec<Sentence> {
    let mut parts = Vec::new();
    let mut start = sentence.start;
    loop {
        let rest = &text[start..sentence.end];
        let Some((limit, _)) = rest.char_indices().nth(PASSAGE_CHARS_MAX) else {
            if !rest.trim().is_empty() {
                parts.push(Sentence { start, end: sentence.end });
            }
            return parts;
        };
        let cut = rest[..limit].rfind(char::is_whitespace).filter(|cut| *cut > 0).unwrap_or(limit);
        parts.push(Sentence { start, end: start + cut });
        start += cut;
        start += text[start..sentence.end].len() - text[start..sentence.end].trim_start().len();
    }
}

fn chars(text: &str, start: usize, end: usize) -> usize {
    text[start..end].chars().count()
}

/// Where each heading stands, with the path from the outermost one to it.
fn paths(headings: &[Heading]) -> Vec<(usize, String)> {
    let mut open: Vec<&Heading> = Vec::new();
    let mut found = Vec::with_capacity(headings.len());
    for heading in headings {
        open.retain(|above| above.level < heading.level);
        open.push(heading);
        let path = open.iter().map(|heading| heading.text.as_str()).collect::<Vec<_>>().join(HEADING_DIVIDER);
        found.push((heading.at, path));
    }
    found
}

/// The headings of a piece of the text.
fn headings_of(paths: &[(usize, String)], start: usize, end: usize) -> Headings {
    let first = paths.partition_point(|(at, _)| *at <= start);
    let above = first.checked_sub(1).map_or("", |last| paths[last].1.as_str());
    let inside = paths[first..].iter().take_while(|(at, _)| *at < end);
    Headings::new(above.to_owned(), inside.map(|(at, path)| (at - start, path.clone())).collect())
}

/// A 64-bit sketch of a text's character trigrams; close texts have close sketches.
#[must_use]
pub fn sketch(text: &str) -> u64 {
    let folded: Vec<char> = text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    let mut votes = [0_i32; 64];
    for shingle in folded.windows(3.min(folded.len().max(1))) {
        let hash = stable_hash(shingle);
        for (bit, vote) in votes.iter_mut().enumerate() {
            *vote += if hash >> bit & 1 == 1 { 1 } else { -1 };
        }
    }
    votes.iter().enumerate().fold(0, |sketch, (bit, vote)| if *vote > 0 { sketch | 1 << bit } else { sketch })
}

/// FNV-1a with a final mix. Stored sketches are compared over releases, so the standard library's hasher, which may
/// change, will not do.
fn stable_hash(shingle: &[char]) -> u64 {
    let folded = shingle
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, c| (hash ^ u64::from(u32::from(*c))).wrapping_mul(0x0100_0000_01b3));
    let mixed = (folded ^ folded >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed ^ mixed >> 33
}

#[must_use]
pub fn is_near(left: u64, right: u64) -> bool {
    (left ^ right).count_ones() <= NEAR_BITS
}

#[cfg(test)]
mod tests;
