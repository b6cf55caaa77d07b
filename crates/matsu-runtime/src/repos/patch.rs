//! A patch as git writes it, cut into the parts that are about one file each.

/// The part of a patch that is about one file.
#[derive(Debug, PartialEq, Eq)]
pub struct FilePatch<'a> {
    /// As git writes it; one with unusual characters is quoted.
    pub path: String,
    pub text: &'a str,
    /// Lines; none are counted in a binary file.
    pub added: u64,
    pub removed: u64,
    pub is_binary: bool,
}

/// Lines of files have a sign before them, so only the head of a part begins with `diff --git`.
#[must_use]
pub fn files_of(patch: &str) -> Vec<FilePatch<'_>> {
    let starts = patch.match_indices("diff --git ").map(|(at, _)| at);
    let starts: Vec<usize> = starts.filter(|at| *at == 0 || patch.as_bytes()[at - 1] == b'\n').collect();
    let ends = starts.iter().skip(1).copied().chain([patch.len()]);
    starts.iter().zip(ends).map(|(start, end)| file_of(&patch[*start..end])).collect()
}

fn file_of(text: &str) -> FilePatch<'_> {
    let (mut added, mut removed, mut is_body) = (0, 0, false);
    let is_binary = text.lines().any(|line| line == "GIT binary patch");
    for line in text.lines().filter(|_| !is_binary) {
        is_body |= line.starts_with("@@");
        added += u64::from(is_body && line.starts_with('+'));
        removed += u64::from(is_body && line.starts_with('-'));
    }
    FilePatch { path: path_of(text), text, added, removed, is_binary }
}

fn path_of(text: &str) -> String {
    let head = text.lines().take_while(|line| !line.starts_with("@@") && !line.starts_with("GIT binary patch"));
    let named =
        |start: &str| head.clone().find_map(|line| line.strip_prefix(start)).filter(|path| *path != "/dev/null");
    let strip = |path: &str, side: &str| {
        let path = path.trim_end_matches('\t');
        match path.strip_prefix('"') {
            Some(quoted) => format!("\"{}", quoted.strip_prefix(side).unwrap_or(quoted)),
            None => path.strip_prefix(side).unwrap_or(path).to_owned(),
        }
    };
    if let Some(path) = named("+++ ") {
        return strip(path, "b/");
    }
    if let Some(path) = named("--- ") {
        return strip(path, "a/");
    }
    if let Some(path) = named("rename to ").or(named("copy to ")) {
        return path.to_owned();
    }
    // Both names are the same: `a/NAME b/NAME`.
    let names = text.lines().next().unwrap_or_default().trim_start_matches("diff --git ");
    strip(names.get(..names.len() / 2).unwrap_or(names), "a/")
}
