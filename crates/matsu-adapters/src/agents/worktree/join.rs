//! What several runs have changed, put together in one commit: the tree that a run begins with which comes after them.
//! Only what each of them changed itself (`base..head`) is taken; the user's unfinished work comes from the user's tree.

use std::path::Path;

use matsu_core::run::Changes;

use super::super::confined::{Cell, View, confined};
use super::super::git::{Call, Git, Whose};
use super::Note;
use super::open::{script_env, sh, words};

/// Exits with 3 where two changes touch the same lines, and prints the head and the files.
const JOIN: &str = r#"
set -eu
start=$START
for pair in $PAIRS; do
  base=${pair%%:*}
  head=${pair#*:}
  head=${head%%:*}
  parent=${pair##*:}
  if [ -z "$start" ] || [ "$(git rev-parse "$start^{tree}")" = "$(git rev-parse "$base^{tree}")" ]; then
    start=$head
    continue
  fi
  code=0
  tree=$(git merge-tree --write-tree --name-only --no-messages --merge-base="$base" "$start" "$head") || code=$?
  if [ "$code" = 1 ] && [ -n "$KEEP" ]; then
    tree=$(printf '%s\n' "$tree" | head -n 1)
    code=0
  fi
  if [ "$code" = 1 ]; then
    printf '%s\n%s\n' "$head" "$tree"
    exit 3
  fi
  [ "$code" = 0 ] || exit "$code"
  start=$(echo "Changes of $head" | git commit-tree "$tree" -p "$start" ${parent:+-p "$parent"})
done
printf '%s' "$start"
"#;

/// Files of a conflict that are named.
const NAMES_MAX: usize = 10;

/// What becomes of lines that two have changed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Conflicts {
    Refused,
    /// They are there with conflict markers.
    Kept,
    /// The same, for a branch: the user's uncommitted files that a run began with stay out of its history.
    KeptForBranch,
}

impl Git {
    /// The commit with these changes on the start. `None`: there are none for this repository.
    ///
    /// # Errors
    /// The changes conflict, or are gone.
    pub(super) async fn join(
        &self,
        cell: &Cell,
        tree: &Path,
        note: &Note,
        start: Option<&str>,
        (onto, conflicts): (&[Changes], Conflicts),
    ) -> Result<Option<String>, String> {
        let here: Vec<&Changes> =
            onto.iter().filter(|changes| Path::new(&changes.repository) == note.repository).collect();
        if here.is_empty() {
            return Ok(None);
        }
        for commit in here.iter().flat_map(|changes| [&changes.base, &changes.head]) {
            let name = format!("{commit}^{{commit}}");
            let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", &name];
            if !note.format.is_object(commit) || self.line(Call::new(Whose::Users, &note.common, &args)).await.is_err()
            {
                return Err(format!(
                    "commit {commit} of a task that this one depends on is not in the repository any more"
                ));
            }
        }
        let pair = |changes: &&Changes| {
            let is_left_out = conflicts == Conflicts::KeptForBranch && changes.has_uncommitted;
            let parent = if is_left_out { "" } else { &changes.head };
            format!("{}:{}:{parent}", changes.base, changes.head)
        };
        let pairs: Vec<String> = here.iter().map(pair).collect();
        let keep = if conflicts == Conflicts::Refused { "" } else { "yes" };
        let settings = [("START", start.unwrap_or_default()), ("PAIRS", &pairs.join(" ")), ("KEEP", keep)];
        let mut env = script_env(self, &settings);
        for who in ["AUTHOR", "COMMITTER"] {
            env.insert(format!("GIT_{who}_NAME"), "Matsu".to_owned());
            env.insert(format!("GIT_{who}_EMAIL"), "matsu@localhost".to_owned());
        }
        let view = View { read: note.lenders(), write: vec![tree.to_owned()] };
        let done = confined(cell, sh(JOIN, env, tree, 100_000, None), view).await?;
        let output = String::from_utf8_lossy(&done.stdout).into_owned();
        match done.code {
            Some(0) if note.format.is_object(&output) => Ok(Some(output)),
            Some(3) => Err(conflict(&here, &output)),
            _ => Err(format!("the changes of the tasks that this task depends on cannot be merged: {}", words(&done))),
        }
    }
}

/// The head, the tree with the conflict, and the files.
fn conflict(all: &[&Changes], output: &str) -> String {
    let mut lines = output.lines();
    let head = lines.next().unwrap_or_default();
    let branch = all.iter().find(|changes| changes.head == head).map_or(head, |changes| changes.branch.as_str());
    let files: Vec<&str> = lines.skip(1).filter(|line| !line.is_empty()).take(NAMES_MAX).collect();
    format!(
        "the tasks that this task depends on changed the same lines as each other or as you: branch {branch} conflicts \
         in {}. Merge them first, or start this task after fewer of them",
        files.join(", ")
    )
}
