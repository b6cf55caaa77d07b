//! From a bundle that a run's confinement printed to references in the user's repository. Nothing in the bundle is
//! believed: it may hold one reference of one name on the known base; its objects are checked one by one in a
//! repository of ours that no run can write; and only then they are given to the user's.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::super::git::{Call, Format, Git, Skeleton, Whose, file_from};
use super::super::process::Input;

/// The lines before the pack. A bundle of ours has one or a few; a merge of old branches has some more.
const HEADER_BYTES_MAX: u64 = 256 * 1024;
const PREREQUISITES_MAX: usize = 1_000;

/// What the first lines say.
#[derive(Debug, PartialEq, Eq)]
pub struct Header {
    /// Commits that the receiving repository must have.
    pub needs: Vec<String>,
    pub head: String,
    /// Where the pack begins.
    pub offset: u64,
}

/// # Errors
/// What is not as it must be.
pub fn read_header(file: impl Read, format: Format, reference: &str) -> Result<Header, String> {
    let mut lines = BufReader::new(file.take(HEADER_BYTES_MAX));
    let mut offset = 0;
    let mut next = || -> Result<String, String> {
        let mut line = Vec::new();
        lines.read_until(b'\n', &mut line).map_err(|error| error.to_string())?;
        offset += line.len() as u64;
        match line.pop() {
            Some(b'\n') => String::from_utf8(line).map_err(|_| "a line of the bundle's header is not text".to_owned()),
            _ => Err("the bundle's header has no end".to_owned()),
        }
    };
    match next()?.as_str() {
        "# v2 git bundle" => {}
        "# v3 git bundle" => {
            let capability = next()?;
            let expected = if format == Format::Sha256 { "@object-format=sha256" } else { "@object-format=sha1" };
            if capability != expected {
                return Err(format!("the bundle requires {capability:?}; only {expected} is accepted"));
            }
        }
        _ => return Err("it is not a git bundle".to_owned()),
    }
    let (mut needs, mut heads) = (Vec::new(), Vec::new());
    loop {
        let line = next()?;
        if line.is_empty() {
            break;
        }
        let (list, entry) = match line.strip_prefix('-') {
            Some(need) => (&mut needs, need),
            None => (&mut heads, line.as_str()),
        };
        let (oid, rest) = entry.split_once(' ').unwrap_or((entry, ""));
        if !format.is_object(oid) || list.len() >= PREREQUISITES_MAX {
            return Err("the bundle's header has a line that is not the name of an object".to_owned());
        }
        list.push((oid.to_owned(), rest.to_owned()));
    }
    match heads.as_slice() {
        [(head, name)] if name == reference => {
            let needs = needs.into_iter().map(|(oid, _)| oid).collect();
            Ok(Header { needs, head: head.clone(), offset })
        }
        [(_, name)] => Err(format!("the bundle contains {name:?}; only {reference} is accepted")),
        _ => Err(format!("the bundle contains {} references; exactly one is accepted", heads.len())),
    }
}

/// A repository of ours that borrows the user's objects.
pub struct Quarantine<'a> {
    pub git: &'a Git,
    pub folder: PathBuf,
    pub format: Format,
    /// Object folders of the user's repository.
    pub objects: Vec<PathBuf>,
    pub shallow: Option<String>,
}

/// What a run may hand over.
pub struct Expected<'a> {
    pub reference: &'a str,
    /// A commit that the user's repository has; what the bundle needs must be it or older.
    pub known: Option<&'a str>,
    /// What the head must descend from.
    pub base: &'a str,
    pub bytes_max: u64,
}

impl Quarantine<'_> {
    /// # Errors
    /// It cannot be written.
    pub fn open(&self) -> Result<(), String> {
        let (format, shallow) = (self.format, self.shallow.as_deref());
        let skeleton = Skeleton { format, is_bare: true, borrows: &self.objects, shallow, settings: "" };
        skeleton.write(&self.folder).map_err(|error| error.to_string())
    }

    fn call(&self, args: &[&str]) -> Call<'_> {
        Call::new(Whose::Ours, &self.folder, args)
    }

    async fn is_ancestor(&self, old: &str, new: &str) -> Result<bool, String> {
        self.git.is_true(self.call(&["merge-base", "--is-ancestor", old, new])).await
    }

    /// Takes the objects in and checks them, and returns the head.
    ///
    /// # Errors
    /// What is wrong with the bundle.
    pub async fn take(&self, bundle: &Path, expected: &Expected<'_>) -> Result<Header, String> {
        let file = std::fs::File::open(bundle).map_err(|error| error.to_string())?;
        let header = read_header(file, self.format, expected.reference)?;
        for need in &header.needs {
            let is_known = match expected.known {
                Some(known) => self.is_ancestor(need, known).await.unwrap_or(false),
                None => false,
            };
            if !is_known {
                return Err(format!("the bundle requires {need}, which is not in the history of the base"));
            }
        }
        self.index(&self.folder.join("objects"), bundle, header.offset, expected.bytes_max).await?;
        let kind = self.git.line(self.call(&["cat-file", "-t", &header.head])).await?;
        if kind != "commit" {
            return Err(format!("the head is a {kind}; only a commit is accepted"));
        }
        if !self.is_ancestor(expected.base, &header.head).await? {
            return Err("the head does not descend from the commit that the run began at".to_owned());
        }
        let range = format!("{}..{}", expected.base, header.head);
        self.git.run(self.call(&["rev-list", "--objects", "--quiet", &range])).await?;
        self.refuse_repositories(&range).await?;
        self.refuse_bare_repositories(expected.base, &header.head).await?;
        Ok(header)
    }

    /// No commit may add, move or remove a repository inside the tree.
    async fn refuse_repositories(&self, range: &str) -> Result<(), String> {
        let commits = self.git.run(self.call(&["rev-list", range])).await?;
        let args = ["diff-tree", "--stdin", "-r", "-m", "--root", "--raw", "--no-renames", "--no-commit-id"];
        let mut call = self.call(&args).stdin(Input::Bytes(commits));
        call.bytes_max = 256 * 1024 * 1024;
        let raw = self.git.run(call).await?;
        let is_repository = |line: &[u8]| {
            let modes = line.strip_prefix(b":").unwrap_or_default();
            modes.starts_with(b"160000 ") || modes.get(7..14) == Some(b"160000 ")
        };
        if raw.split(|byte| *byte == b'\n').any(is_repository) {
            return Err("a commit changes a submodule or another repository inside the tree".to_owned());
        }
        Ok(())
    }

    /// The result must hold no files that git would take for a repository and obey.
    async fn refuse_bare_repositories(&self, base: &str, head: &str) -> Result<(), String> {
        let names = async |args: &[&str]| {
            let mut call = self.call(args);
            call.bytes_max = 256 * 1024 * 1024;
            self.git.run(call).await
        };
        let all = names(&["ls-tree", "-r", "-z", "--name-only", "--full-tree", head]).await?;
        let changed = names(&["diff-tree", "-r", "-z", "--name-only", "--no-renames", base, head]).await?;
        match bare_repository(&all, &changed) {
            None => Ok(()),
            Some(folder) => Err(format!(
                "{folder} looks like a git repository, and git would use its settings; rename its files if you want to \
                 keep them"
            )),
        }
    }

    /// Git checks every object and every link between them.
    async fn index(&self, objects: &Path, bundle: &Path, offset: u64, bytes_max: u64) -> Result<(), String> {
        self.git.run(self.indexing(objects, bundle, offset, bytes_max)?).await.map(drop)
    }

    /// The call that does so.
    ///
    /// # Errors
    /// The bundle cannot be read.
    pub fn indexing(&self, objects: &Path, bundle: &Path, offset: u64, bytes_max: u64) -> Result<Call<'_>, String> {
        let size = format!("--max-input-size={bytes_max}");
        let call = self.call(&["index-pack", "--stdin", "--fix-thin", "--strict", &size]);
        let call = call.env("GIT_OBJECT_DIRECTORY", objects.display().to_string());
        Ok(call.stdin(file_from(bundle, offset).map_err(|error| error.to_string())?))
    }

    /// Gives checked objects to another repository, which must have what this one borrows.
    ///
    /// # Errors
    /// It cannot be written.
    pub async fn give(&self, objects: &Path, bundle: &Path, header: &Header, bytes_max: u64) -> Result<(), String> {
        self.index(objects, bundle, header.offset, bytes_max).await
    }

    /// Files, insertions and deletions, with the attributes of the base.
    ///
    /// # Errors
    /// As git's.
    pub async fn count(&self, base: &str, head: &str) -> Result<(u64, u64, u64), String> {
        let args = ["diff", "--numstat", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", base, head];
        let counted = self.git.run(self.call(&args).attributes(base)).await?;
        Ok(count(&counted))
    }
}

/// A folder that git takes for a repository, because it has `HEAD`, and something in `objects` and `refs`; and in which
/// something was changed.
fn bare_repository(all: &[u8], changed: &[u8]) -> Option<String> {
    let (all, changed) = (sorted(all), sorted(changed));
    let has = |names: &BTreeSet<&[u8]>, folder: &[u8], inside: &str| {
        let start = [folder, inside.as_bytes()].concat();
        names.range(start.as_slice()..).next().is_some_and(|name| name.starts_with(&start))
    };
    let is_one =
        |folder: &&[u8]| has(&all, folder, "objects/") && has(&all, folder, "refs/") && has(&changed, folder, "");
    let mut folders = all.iter().filter_map(|name| name.strip_suffix(b"HEAD")).filter(|folder| folder.ends_with(b"/"));
    let found = String::from_utf8_lossy(folders.find(is_one)?).into_owned();
    Some(found.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).take(200).collect())
}

fn sorted(names: &[u8]) -> BTreeSet<&[u8]> {
    names.split(|byte| *byte == 0).collect()
}

/// Of a binary file git counts no lines.
fn count(numstat: &[u8]) -> (u64, u64, u64) {
    let mut sum = (0, 0, 0);
    for entry in numstat.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
        let entry = String::from_utf8_lossy(entry);
        let mut fields = entry.split('\t').map(|field| field.parse::<u64>().unwrap_or(0));
        sum.0 += 1;
        sum.1 += fields.next().unwrap_or(0);
        sum.2 += fields.next().unwrap_or(0);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "refs/matsu/result";

    fn header(text: &str) -> Result<Header, String> {
        read_header(text.as_bytes(), Format::Sha1, NAME)
    }

    #[test]
    fn one_reference_of_the_right_name_is_taken() {
        let (a, b) = ("a".repeat(40), "b".repeat(40));
        let good = format!("# v2 git bundle\n-{a} the base\n{b} {NAME}\n\nPACK");
        let read = header(&good).unwrap();
        assert_eq!((read.needs.as_slice(), read.head.as_str()), (&[a.clone()][..], b.as_str()));
        assert_eq!(&good.as_bytes()[usize::try_from(read.offset).unwrap()..], b"PACK");
    }

    #[test]
    fn everything_else_is_refused() {
        let (a, b) = ("a".repeat(40), "b".repeat(40));
        for (text, words) in [
            (String::new(), "has no end"),
            ("PACK\n".to_owned(), "not a git bundle"),
            ("# v2 git bundle\n".to_owned(), "has no end"),
            ("# v2 git bundle\n\n".to_owned(), "0 references"),
            (format!("# v2 git bundle\n{a} {NAME}\n{b} refs/tags/v1\n\n"), "2 references"),
            (format!("# v2 git bundle\n{a} refs/heads/main\n\n"), "refs/heads/main"),
            (format!("# v2 git bundle\n{a} refs/../../config\n\n"), "only refs/matsu/result"),
            (format!("# v3 git bundle\n@filter=blob:none\n{a} {NAME}\n\n"), "@filter"),
            (format!("# v2 git bundle\n--upload-pack=x\n{a} {NAME}\n\n"), "not the name of an object"),
            (format!("# v2 git bundle\n{a} {NAME}\n{}", "x".repeat(300_000)), "has no end"),
        ] {
            let error = header(&text).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn files_that_make_a_repository_are_found() {
        let all = b"docs/HEAD\0docs/config\0docs/objects/keep\0docs/refs/heads/main\0src/HEAD\0";
        assert_eq!(bare_repository(all, b"docs/objects/keep\0").as_deref(), Some("docs/"));
        assert_eq!(bare_repository(all, b"src/HEAD\0"), None, "it was there before");
        for names in [&b"d/HEAD\0d/objects/keep\0d/refsx\0"[..], b"HEAD\0objects/a\0refs/b\0", b"OVERHEAD\0", b""] {
            assert_eq!(bare_repository(names, names), None, "{}", String::from_utf8_lossy(names));
        }
    }

    #[test]
    fn lines_are_counted_and_binary_files_are_files() {
        assert_eq!(count(b"3\t1\ta.txt\0-\t-\tb.png\x000\t7\tc d.txt\0"), (3, 3, 8));
        assert_eq!(count(b""), (0, 0, 0));
    }
}
