//! What a run changed, for a model: a list of files, or the patch of one of them in parts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use matsu_core::id::TaskId;
use matsu_core::limits::RESULT_HEAD_BYTES_MAX;

use crate::agents::{Agents, RunPatch};
use crate::repos::{FilePatch, files_of};
use crate::tool::{ToolContext, ToolError};

/// Files that one reply lists.
const FILES_MAX: usize = 100;

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiffWish {
    /// One file's patch.
    path: Option<String>,
    /// next_offset of the reply.
    #[schemars(range(min = 0))]
    offset: Option<u64>,
    /// With several runs: the agent of one.
    agent: Option<String>,
}

#[derive(Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct DiffReport {
    /// The agent that made the changes.
    agent: String,
    /// Without path: the files that were changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<FileReport>,
    /// Files that are not listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    more_files: Option<usize>,
    /// The patch of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    /// Set if there is more: pass as offset.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct FileReport {
    path: String,
    added: u64,
    removed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    binary: Option<bool>,
}

impl FileReport {
    fn of(file: &FilePatch<'_>) -> Self {
        let binary = file.is_binary.then_some(true);
        Self { path: file.path.clone(), added: file.added, removed: file.removed, binary }
    }
}

/// # Errors
/// The run has no patch, or did not change that file.
pub async fn read(cx: &ToolContext, id: &TaskId, wish: &DiffWish) -> Result<DiffReport, ToolError> {
    let asked = Agents::of(&cx.runtime).patch_of(&cx.principal, id, wish.agent.as_deref());
    let RunPatch { agent, patch, .. } = asked.await?;
    Ok(DiffReport { agent, ..report(&String::from_utf8_lossy(&patch), wish)? })
}

fn report(patch: &str, wish: &DiffWish) -> Result<DiffReport, ToolError> {
    let files = files_of(patch);
    let Some(path) = &wish.path else {
        if wish.offset.is_some() {
            return Err(ToolError::param(
                "diff.offset",
                "an offset together with a path",
                "no path",
                "give diff.path too",
            ));
        }
        let more_files = files.len().checked_sub(FILES_MAX).filter(|more| *more > 0);
        let files = files.iter().take(FILES_MAX).map(FileReport::of).collect();
        return Ok(DiffReport { files, more_files, ..DiffReport::default() });
    };
    let Some(FilePatch { text, .. }) = files.iter().find(|file| file.path == *path) else {
        let message = format!("the run did not change {path}; call with diff {{}} for the files that it changed");
        return Err(ToolError::param("diff.path", "a file that the run changed", path, message));
    };
    let offset = usize::try_from(wish.offset.unwrap_or(0)).unwrap_or(usize::MAX).min(text.len());
    let start = text.ceil_char_boundary(offset);
    let end = text.floor_char_boundary(start.saturating_add(RESULT_HEAD_BYTES_MAX).min(text.len()));
    let next_offset = (end < text.len()).then_some(end as u64);
    Ok(DiffReport { patch: Some(text[start..end].to_owned()), next_offset, ..DiffReport::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "diff --git a/a b.txt b/a b.txt\nindex 1..2 100644\n--- a/a b.txt\t\n+++ b/a b.txt\t\n@@ -1 +1,2 @@\n-diff --git a/x b/x\n+one\n+++ two\n\
                         diff --git a/old b/new\nsimilarity index 100%\nrename from old\nrename to new\n\
                         diff --git a/x.bin b/x.bin\nindex 1..2 100644\nGIT binary patch\nliteral 1\nIc-x\n\n\
                         diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\
                         diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n";

    fn wish(path: Option<&str>, offset: Option<u64>) -> DiffWish {
        DiffWish { path: path.map(str::to_owned), offset, agent: None }
    }

    #[test]
    fn every_kind_of_change_is_listed_under_its_name() {
        let said = report(PATCH, &wish(None, None)).unwrap();
        let shown: Vec<_> =
            said.files.iter().map(|file| (file.path.as_str(), file.added, file.removed, file.binary)).collect();
        let expected = [
            ("a b.txt", 2, 1, None),
            ("new", 0, 0, None),
            ("x.bin", 0, 0, Some(true)),
            ("gone", 0, 1, None),
            ("run.sh", 0, 0, None),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn the_patch_of_a_file_is_read_in_parts() {
        let long = format!("diff --git a/l b/l\n--- a/l\n+++ b/l\n@@ -0,0 +1,9999 @@\n{}", "+日本\n".repeat(3_000));
        let (mut offset, mut read) = (None, String::new());
        loop {
            let said = report(&long, &wish(Some("l"), offset)).unwrap();
            read.push_str(&said.patch.unwrap());
            offset = said.next_offset;
            if offset.is_none() {
                break;
            }
        }
        assert_eq!(read, long);
        let refused = report(PATCH, &wish(Some("nothing"), None)).unwrap_err();
        assert!(refused.message.contains("did not change nothing"), "{refused:?}");
    }
}
