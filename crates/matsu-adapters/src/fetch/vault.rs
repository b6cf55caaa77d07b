//! The cookie vault: one file that only its owner's account can read, written whole and swapped in, so that a crash
//! leaves the old one or the new one.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use matsu_core::ports::cookie_vault::{CookieVault, VaultError};
use matsu_core::principal::Principal;
use matsu_core::research::address::registrable;

use super::cookies::{self, Cookie};

/// A browser of the person's own, which can be asked for cookies.
#[async_trait]
pub trait CookieSource: Send + Sync {
    async fn cookies_of(&self, domain: &str) -> Result<Vec<Cookie>, VaultError>;
}

type ByOwner = BTreeMap<String, BTreeMap<String, Vec<Cookie>>>;

/// Cookies by owner and registrable domain, in a file of mode 0600.
pub struct FileVault {
    path: PathBuf,
    source: Option<Arc<dyn CookieSource>>,
    /// `None` until first read.
    known: Mutex<Option<ByOwner>>,
}

impl FileVault {
    #[must_use]
    pub fn new(path: PathBuf, source: Option<Arc<dyn CookieSource>>) -> Self {
        Self { path, source, known: Mutex::new(None) }
    }

    /// The owner's cookies that may go to this host's site. Empty if the file cannot be read: no cookie is sent then.
    #[must_use]
    pub fn for_host(&self, owner: &Principal, host: &str) -> Vec<Cookie> {
        let found = self.with(|all| {
            let site = all.get(owner.as_str()).and_then(|sites| sites.get(&registrable(host)));
            (site.cloned().unwrap_or_default(), IsChanged::No)
        });
        found.unwrap_or_default()
    }

    fn with<T>(&self, act: impl FnOnce(&mut ByOwner) -> (T, IsChanged)) -> Result<T, VaultError> {
        let unavailable = |error: std::io::Error| VaultError::Unavailable(format!("the cookie file: {}", error.kind()));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = match known.take() {
            Some(all) => all,
            None => read(&self.path).map_err(unavailable)?,
        };
        let (value, is_changed) = act(&mut all);
        if is_changed == IsChanged::Yes {
            // If the write fails the memory is dropped too: file and memory must not differ.
            write(&self.path, &all).map_err(unavailable)?;
        }
        *known = Some(all);
        Ok(value)
    }

    fn put(&self, owner: &Principal, domain: &str, found: Vec<Cookie>) -> Result<usize, VaultError> {
        let domain = registrable(domain);
        let kept: Vec<Cookie> = found.into_iter().filter(|cookie| registrable(&cookie.domain) == domain).collect();
        let count = kept.len();
        if count == 0 {
            return Err(VaultError::Malformed(format!("there is no cookie for {domain} in it")));
        }
        self.with(|all| (all.entry(owner.as_str().to_owned()).or_default().insert(domain, kept), IsChanged::Yes))?;
        Ok(count)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum IsChanged {
    Yes,
    No,
}

#[async_trait]
impl CookieVault for FileVault {
    async fn keep(&self, owner: &Principal, domain: &str, text: &str) -> Result<usize, VaultError> {
        let found = cookies::parse(domain, text).map_err(|error| VaultError::Malformed(error.to_string()))?;
        self.put(owner, domain, found)
    }

    async fn collect(&self, owner: &Principal, domain: &str) -> Result<usize, VaultError> {
        let Some(source) = &self.source else {
            let why =
                "no browser is configured to read cookies from; set research.browser_debug, such as 127.0.0.1:9222";
            return Err(VaultError::Unavailable(why.to_owned()));
        };
        let found = source.cookies_of(domain).await?;
        self.put(owner, domain, found)
    }

    async fn forget(&self, owner: &Principal, domain: &str) -> Result<(), VaultError> {
        let domain = registrable(domain);
        self.with(|all| {
            let removed = all.get_mut(owner.as_str()).and_then(|sites| sites.remove(&domain));
            ((), if removed.is_some() { IsChanged::Yes } else { IsChanged::No })
        })
    }
}

fn read(path: &Path) -> std::io::Result<ByOwner> {
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|_| std::io::ErrorKind::InvalidData.into()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(ByOwner::new()),
        Err(error) => Err(error),
    }
}

fn write(path: &Path, all: &ByOwner) -> std::io::Result<()> {
    let next = path.with_extension("new");
    let _ = std::fs::remove_file(&next);
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&next)?;
    file.write_all(&serde_json::to_vec(all)?)?;
    file.sync_all()?;
    std::fs::rename(&next, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[tokio::test]
    async fn cookies_stay_with_their_owner_and_site_and_survive() {
        let home = tempfile::tempdir().expect("a folder");
        let path = home.path().join("cookies.json");
        let (ann, bob) = (Principal::user("ann"), Principal::user("bob"));
        let vault = FileVault::new(path.clone(), None);
        assert_eq!(vault.keep(&ann, "www.example.org", "sid=1; t=2").await, Ok(2));
        assert_eq!(path.metadata().expect("a file").permissions().mode() & 0o777, 0o600);

        let again = FileVault::new(path, None);
        assert_eq!(again.for_host(&ann, "www.example.org").len(), 2);
        assert_eq!(again.for_host(&ann, "example.net").len(), 0);
        assert_eq!(again.for_host(&bob, "www.example.org").len(), 0);
        again.forget(&ann, "example.org").await.expect("forgotten");
        assert_eq!(again.for_host(&ann, "www.example.org").len(), 0);
        assert!(matches!(again.collect(&ann, "example.org").await, Err(VaultError::Unavailable(_))));
    }

    #[tokio::test]
    async fn cookies_for_another_site_are_left_out() {
        let home = tempfile::tempdir().expect("a folder");
        let vault = FileVault::new(home.path().join("c"), None);
        let file = ".evil.net\tTRUE\t/\tFALSE\t0\ta\t1\n.example.org\tTRUE\t/\tFALSE\t0\tb\t1\n";
        assert_eq!(vault.keep(&Principal::local_user(), "example.org", file).await, Ok(1));
        let only_evil = ".evil.net\tTRUE\t/\tFALSE\t0\ta\t1\n";
        assert!(vault.keep(&Principal::local_user(), "example.org", only_evil).await.is_err());
    }
}
