//! Secrets that this process knows, and texts without them. Whatever a program prints goes through here before it is
//! stored, shown or logged. Only the value itself is found: a secret that a program has encoded or cut up is not.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, LazyLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A shorter one would be found in ordinary words.
pub const SECRET_BYTES_MIN: usize = 8;

/// No key is longer; of a longer text the beginning is looked for.
const SECRET_BYTES_MAX: usize = 8 * 1024;

/// Tokens that this process has made and that are remembered at once.
const MADE_MAX: usize = 4_096;

/// A part of a secret at the edge of a text that was cut.
const EDGE_BYTES_MIN: usize = 8;

static KNOWN: LazyLock<RwLock<Known>> = LazyLock::new(RwLock::default);

const HEAD: usize = SECRET_BYTES_MIN;

#[derive(Default)]
struct Known {
    /// In order, so that those with a given beginning are neighbours.
    secrets: BTreeMap<Arc<str>, Entry>,
    by_head: HashMap<[u8; HEAD], Vec<Arc<str>>>,
    steps: Steps,
    /// The oldest first.
    made: VecDeque<Arc<str>>,
    longest: usize,
}

struct Entry {
    name: Arc<str>,
    /// How many still need it.
    holders: usize,
}

/// How far a search may go on from a place of a text, by the last letters of what could be the beginning of a secret
/// there (Wu and Manber). Most places are passed over without a look. What a forgotten secret has left behind only
/// makes the search look once more.
struct Steps(Vec<u8>);

impl Default for Steps {
    fn default() -> Self {
        Self(vec![Self::LONGEST; 1 << 15])
    }
}

impl Steps {
    /// So many letters are looked at together.
    const LETTERS: usize = 3;
    /// None of the beginnings holds them.
    const LONGEST: u8 = (HEAD - Self::LETTERS + 1) as u8;

    fn place([a, b, c]: [u8; Self::LETTERS]) -> usize {
        (usize::from(a) << 8 ^ usize::from(b) << 4 ^ usize::from(c)) & 0x7fff
    }

    fn add(&mut self, head: &[u8; HEAD]) {
        for (before, letters) in (0..).zip(head.windows(Self::LETTERS).rev()) {
            if let Some(letters) = letters.first_chunk() {
                let step = &mut self.0[Self::place(*letters)];
                *step = before.min(*step);
            }
        }
    }

    /// The first place from `at` on where a secret may begin, if its whole beginning is there.
    fn next(&self, bytes: &[u8], mut at: usize) -> Option<usize> {
        loop {
            let (_, letters) = bytes.get(at..at + HEAD)?.split_last_chunk()?;
            match self.0[Self::place(*letters)] {
                0 => return Some(at),
                step => at += usize::from(step),
            }
        }
    }

    /// Whether a secret may begin with these letters. Of fewer than three that is not known.
    fn may_begin(&self, bytes: &[u8]) -> bool {
        bytes.first_chunk().is_none_or(|letters| self.0[Self::place(*letters)] < Self::LONGEST)
    }
}

impl Known {
    fn add(&mut self, name: &str, secret: &str) -> Option<Arc<str>> {
        let secret = &secret[..secret.floor_char_boundary(SECRET_BYTES_MAX)];
        let head = secret.as_bytes().first_chunk::<HEAD>()?;
        if let Some((known, _)) = self.secrets.get_key_value(secret) {
            let known = Arc::clone(known);
            // The last one to name it knows best what it is for.
            self.secrets.entry(Arc::clone(&known)).and_modify(|entry| {
                entry.holders += 1;
                entry.name = name.into();
            });
            return Some(known);
        }
        let known: Arc<str> = secret.into();
        self.by_head.entry(*head).or_default().push(Arc::clone(&known));
        self.steps.add(head);
        self.longest = self.longest.max(secret.len());
        self.secrets.insert(Arc::clone(&known), Entry { name: name.into(), holders: 1 });
        Some(known)
    }

    fn remove(&mut self, secret: &Arc<str>) {
        let Some(entry) = self.secrets.get_mut(secret) else { return };
        entry.holders -= 1;
        if entry.holders > 0 {
            return;
        }
        self.secrets.remove(secret);
        if let Some(head) = secret.as_bytes().first_chunk::<HEAD>()
            && let Some(same) = self.by_head.get_mut(head)
        {
            same.retain(|other| other != secret);
            if same.is_empty() {
                self.by_head.remove(head);
            }
        }
    }

    /// The first secret from a place on, and where it stands; of several there the longest.
    fn find(&self, bytes: &[u8], from: usize) -> Option<(usize, &Arc<str>)> {
        let mut at = from;
        loop {
            at = self.steps.next(bytes, at)?;
            let rest = &bytes[at..];
            let same = rest.first_chunk().and_then(|head: &[u8; HEAD]| self.by_head.get(head));
            let here = same.into_iter().flatten().filter(|secret| rest.starts_with(secret.as_bytes()));
            if let Some(secret) = here.max_by_key(|secret| secret.len()) {
                return Some((at, secret));
            }
            at += 1;
        }
    }

    /// Whether a secret begins with all of this and goes on.
    fn may_go_on(&self, beginning: &str) -> bool {
        if !self.steps.may_begin(beginning.as_bytes()) {
            return false;
        }
        let after = self.secrets.range::<str, _>((Bound::Excluded(beginning), Bound::Unbounded)).next();
        after.is_some_and(|(secret, _)| secret.starts_with(beginning))
    }

    fn mark(&self, secret: &str) -> String {
        let name = self.secrets.get(secret).map_or("secret", |entry| &entry.name);
        format!("[redacted: {name}]")
    }

    /// The text without secrets, and how much of its end may be the beginning of one.
    fn hide(&self, text: &str, goes_on: bool) -> (String, usize) {
        let mut shown = String::with_capacity(text.len());
        let mut at = 0;
        // Before this place a secret would be here to its end.
        let end_from = if goes_on { (text.len() + 1).saturating_sub(self.longest) } else { text.len() };
        loop {
            let found = self.find(text.as_bytes(), at);
            let until = found.map_or(text.len(), |(place, _)| place + 1);
            let mut ends = (at.max(end_from)..until).filter(|place| text.is_char_boundary(*place));
            if let Some(place) = ends.find(|place| self.may_go_on(&text[*place..])) {
                shown.push_str(&text[at..place]);
                return (shown, text.len() - place);
            }
            let Some((place, secret)) = found else { break };
            shown.push_str(&text[at..place]);
            shown.push_str(&self.mark(secret));
            at = place + secret.len();
        }
        shown.push_str(&text[at..]);
        (shown, 0)
    }
}

fn read() -> RwLockReadGuard<'static, Known> {
    KNOWN.read().unwrap_or_else(PoisonError::into_inner)
}

fn write() -> RwLockWriteGuard<'static, Known> {
    KNOWN.write().unwrap_or_else(PoisonError::into_inner)
}

/// A secret of several lines is found line by line: programs are read so.
fn parts(secret: &str) -> impl Iterator<Item = &str> {
    let is_long = secret.contains('\n');
    secret.trim().lines().map(str::trim).filter(move |line| !is_long || (line.len() >= 16 && !line.starts_with("---")))
}

/// Remembers a secret for as long as this process lives.
pub fn remember(name: &str, secret: &str) {
    let mut known = write();
    for part in parts(secret) {
        known.add(name, part);
    }
}

/// Remembers a token that this process has made or that was shown to it; the oldest of many are forgotten.
pub fn remember_made(name: &str, secret: &str) {
    if read().secrets.contains_key(secret) {
        return;
    }
    let mut known = write();
    if let Some(secret) = known.add(name, secret) {
        known.made.push_back(secret);
    }
    if known.made.len() > MADE_MAX
        && let Some(oldest) = known.made.pop_front()
    {
        known.remove(&oldest);
    }
}

/// A secret that is remembered while this lives.
#[derive(Debug)]
pub struct Remembered(Vec<Arc<str>>);

#[must_use]
pub fn remember_while(name: &str, secret: &str) -> Remembered {
    let mut known = write();
    Remembered(parts(secret).filter_map(|part| known.add(name, part)).collect())
}

impl Drop for Remembered {
    fn drop(&mut self) {
        let mut known = write();
        self.0.iter().for_each(|secret| known.remove(secret));
    }
}

/// Whether a variable or header of this name holds a secret.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    const WORDS: [&str; 10] = [
        "KEY",
        "APIKEY",
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "CREDENTIAL",
        "CREDENTIALS",
        "AUTHORIZATION",
    ];
    name.to_uppercase().split(['_', '-', '.']).any(|word| WORDS.contains(&word))
}

/// Remembers what these variables hold, where their names say that it is secret and it is not just a place.
pub fn remember_variables<'a>(variables: impl IntoIterator<Item = (&'a String, &'a String)>) {
    for (name, value) in variables {
        if let Some(secret) = secret_in(name, value) {
            remember(name, secret);
        }
    }
}

/// The secret of a variable or header, if its name says that it holds one.
#[must_use]
pub fn secret_in<'v>(name: &str, value: &'v str) -> Option<&'v str> {
    let value = value.trim();
    let secret =
        value.split_once(' ').filter(|_| name.eq_ignore_ascii_case("authorization")).map_or(value, |(_, it)| it);
    let is_place = secret.starts_with('/') || secret.starts_with("~/") || secret.starts_with("file:");
    (is_secret_name(name) && !is_place && secret.len() >= SECRET_BYTES_MIN).then_some(secret)
}

/// A whole text without secrets.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    let known = read();
    if known.find(text.as_bytes(), 0).is_none() { Cow::Borrowed(text) } else { Cow::Owned(known.hide(text, false).0) }
}

/// The same for a text that was cut out of a longer one: a part of a secret may stand at its edges.
#[must_use]
pub fn redact_cut(text: &str) -> String {
    let known = read();
    let mut text = text;
    let mut marks = ["".to_owned(), "".to_owned()];
    for secret in known.secrets.keys() {
        let ends = (secret.len() + 1).saturating_sub(text.len())..=secret.len().saturating_sub(EDGE_BYTES_MIN);
        let end = ends.filter(|at| *at > 0).find(|at| secret.get(*at..).is_some_and(|end| text.starts_with(end)));
        if let Some(at) = end {
            (marks[0], text) = (known.mark(secret), &text[secret.len() - at..]);
            break;
        }
    }
    let from = text.len().saturating_sub(known.longest);
    let mut begins = (from..(text.len() + 1).saturating_sub(EDGE_BYTES_MIN)).filter(|at| text.is_char_boundary(*at));
    if let Some(at) = begins.find(|at| known.may_go_on(&text[*at..])) {
        marks[1] = "[redacted]".to_owned();
        text = &text[..at];
    }
    let [before, after] = marks;
    format!("{before}{}{after}", known.hide(text, false).0)
}

/// A text that comes in pieces. A secret may lie across two of them, so what could be the beginning of one is held
/// back until more comes.
#[derive(Debug, Default)]
pub struct Stream {
    held: String,
}

impl Stream {
    /// Bytes that may be the beginning of a secret and wait for what follows.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// What can be shown by now.
    pub fn push(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        let (shown, held) = read().hide(&self.held, true);
        self.held.drain(..self.held.len() - held);
        shown
    }

    /// What was held back: nothing more comes.
    pub fn finish(&mut self) -> String {
        let rest = std::mem::take(&mut self.held);
        redact(&rest).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-test-9f8e7d6c5b4a";

    #[test]
    fn a_known_secret_is_named_and_not_shown() {
        let _known = remember_while("REDACT_ONE", KEY);
        assert_eq!(
            redact(&format!("key={KEY}, again {KEY}")),
            "key=[redacted: REDACT_ONE], again [redacted: REDACT_ONE]"
        );
        assert!(matches!(redact("nothing here"), Cow::Borrowed(_)));
        assert_eq!(redact("鍵 sk-test-"), "鍵 sk-test-");
    }

    #[test]
    fn a_secret_without_a_holder_is_forgotten() {
        let (one, two) = (remember_while("A", "a-secret-for-two"), remember_while("B", "a-secret-for-two"));
        drop(one);
        assert_eq!(redact("a-secret-for-two"), "[redacted: B]");
        drop(two);
        assert_eq!(redact("a-secret-for-two"), "a-secret-for-two");
    }

    #[test]
    fn a_secret_across_pieces_is_found_wherever_it_is_cut() {
        let _known = remember_while("STREAMED", "stream-secret-ä-0123456789");
        let whole = "before stream-secret-ä-0123456789 after stream-secr and stream-secret-ä-01234567 end";
        let expected = "before [redacted: STREAMED] after stream-secr and stream-secret-ä-01234567 end";
        for cut in (0..whole.len()).filter(|at| whole.is_char_boundary(*at)) {
            let mut stream = Stream::default();
            let shown = [stream.push(&whole[..cut]), stream.push(&whole[cut..]), stream.finish()].concat();
            assert_eq!(shown, expected, "cut at {cut}");
        }
        let mut stream = Stream::default();
        let mut shown: String = whole.chars().map(|letter| stream.push(&letter.to_string())).collect();
        shown += &stream.finish();
        assert_eq!(shown, expected, "letter by letter");
    }

    #[test]
    fn a_secret_is_found_wherever_it_stands() {
        let secrets = ["aaaaaaab", "baaaaaaa-1", "鍵の秘密です", "eight-88"];
        let _known = secrets.map(|secret| remember_while("PLACED", secret));
        for secret in secrets {
            for before in (0..40).map(|n| "a".repeat(n)).chain(["baaaaa".to_owned(), "鍵の秘".to_owned()]) {
                let shown = redact(&format!("{before}{secret} z")).into_owned();
                assert!(shown.contains("[redacted: PLACED]") && !shown.contains(secret), "{before}{secret}: {shown}");
            }
        }
    }

    #[test]
    fn a_longer_secret_is_not_taken_for_the_shorter_one_it_begins_with() {
        let _known = [remember_while("SHORT", "nested-secret"), remember_while("LONG", "nested-secret-and-more")];
        let mut stream = Stream::default();
        assert_eq!(stream.push("nested-secret"), "");
        assert_eq!(stream.push("-and-more!"), "[redacted: LONG]!");
        assert_eq!(stream.push("nested-secret?") + &stream.finish(), "[redacted: SHORT]?");
    }

    #[test]
    fn a_cut_text_shows_no_part_of_a_secret() {
        let _known = remember_while("EDGE", "edge-secret-abcdefghijklmnop");
        let text = "cret-abcdefghijklmnop failed; edge-secret-abcdefghijklmnop; last edge-secret-abcd";
        let shown = redact_cut(text);
        assert!(!shown.contains("abcd"), "{shown}");
        assert!(shown.contains("failed;") && shown.contains("last"), "{shown}");
        assert_eq!(redact_cut("an ordinary text"), "an ordinary text");
        assert_eq!(redact_cut(""), "");
    }

    #[test]
    fn a_key_of_several_lines_is_found_line_by_line() {
        let pem = "-----BEGIN KEY-----\nMIIBVgIBADANBgkqhkiG9w0B\nAQEFAASCAUAwggE8AgEAAkEA\n-----END KEY-----\n";
        let _known = remember_while("PEM", pem);
        assert_eq!(redact("x MIIBVgIBADANBgkqhkiG9w0B"), "x [redacted: PEM]");
        assert_eq!(redact("-----BEGIN KEY-----"), "-----BEGIN KEY-----");
    }

    #[test]
    fn names_say_what_is_secret() {
        for (name, value) in
            [("OPENAI_API_KEY", "sk-1234567890"), ("gh_token", "ghp_12345678"), ("X-Api-Key", "12345678")]
        {
            assert_eq!(secret_in(name, value), Some(value), "{name}");
        }
        assert_eq!(secret_in("Authorization", "Bearer abcdefgh1"), Some("abcdefgh1"));
        for (name, value) in [
            ("GOOGLE_APPLICATION_CREDENTIALS", "/home/me/key.json"),
            ("SSH_AUTH_SOCK", "agent.12345"),
            ("TOKENIZERS_PARALLELISM", "false-value"),
            ("API_KEY", "short"),
            ("PATH", "/usr/bin:/bin"),
        ] {
            assert_eq!(secret_in(name, value), None, "{name}");
        }
    }

    #[test]
    fn made_secrets_do_not_pile_up() {
        for nth in 0..MADE_MAX + 10 {
            remember_made("made", &format!("made-secret-number-{nth:08}"));
        }
        assert!(read().made.len() <= MADE_MAX);
        assert_eq!(redact("made-secret-number-00000000"), "made-secret-number-00000000");
    }
}
