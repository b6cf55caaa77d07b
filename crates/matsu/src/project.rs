//! Which project a client works on, by the folder it was started in.

use std::path::Path;

/// The repository that the folder lies in, else the folder itself, without links: every session that works on a project
/// names the same one.
pub fn folder_of(started_in: &Path) -> String {
    let folder = started_in.canonicalize().unwrap_or_else(|_| started_in.to_owned());
    let repository = folder.ancestors().find(|folder| folder.join(".git").exists());
    repository.unwrap_or(&folder).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_one_repository_are_one_project() {
        let root = tempfile::tempdir().unwrap();
        let (repository, inner) = (root.path().join("shop"), root.path().join("shop/src/deep"));
        std::fs::create_dir_all(&inner).unwrap();
        assert_ne!(folder_of(&inner), folder_of(&repository), "without a repository each folder is its own");
        std::fs::create_dir(repository.join(".git")).unwrap();
        assert_eq!(folder_of(&inner), folder_of(&repository));
        std::os::unix::fs::symlink(&inner, root.path().join("link")).unwrap();
        assert_eq!(folder_of(&root.path().join("link")), folder_of(&repository));
        assert_ne!(folder_of(root.path()), folder_of(&repository));
    }
}
