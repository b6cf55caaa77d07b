//! Passkeys of agents: shown once, kept as an Argon2 hash, compared slowly and a few at a time.

use std::sync::LazyLock;

use argon2::Argon2;
use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use matsu_core::ports::store::StoreError;
use tokio::sync::Semaphore;

/// Each takes 19 MB and a core: a flood of wrong passkeys must not take the machine.
static AT_ONCE: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(2));

fn defect(error: impl std::fmt::Display) -> StoreError {
    StoreError::Internal(format!("a passkey could not be hashed: {error}"))
}

async fn slowly<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, StoreError> {
    let _turn = AT_ONCE.acquire().await.map_err(defect)?;
    tokio::task::spawn_blocking(work).await.map_err(defect)
}

/// What a store keeps of a passkey.
pub async fn hash(passkey: String) -> Result<String, StoreError> {
    slowly(move || hash_now(&passkey)).await?
}

fn hash_now(passkey: &str) -> Result<String, StoreError> {
    let salt = matsu_core::secret::mint();
    let salt = SaltString::from_b64(&salt[..32]).map_err(defect)?;
    Ok(Argon2::default().hash_password(passkey.as_bytes(), &salt).map_err(defect)?.to_string())
}

/// Whether the passkey is the one. Without a hash the answer is no, and takes as long: an unknown agent cannot be told
/// from a wrong passkey.
pub async fn matches(passkey: String, hash: Option<String>) -> Result<bool, StoreError> {
    let compare = move || match hash {
        Some(hash) => PasswordHash::new(&hash)
            .is_ok_and(|hash| Argon2::default().verify_password(passkey.as_bytes(), &hash).is_ok()),
        None => {
            let _same_effort = hash_now(&passkey);
            false
        }
    };
    slowly(compare).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_right_passkey_matches_and_nothing_of_it_is_kept() {
        let hashed = hash("a passkey".to_owned()).await.unwrap();
        assert!(hashed.starts_with("$argon2id$"), "{hashed}");
        assert!(!hashed.contains("passkey"));
        assert_ne!(hashed, hash("a passkey".to_owned()).await.unwrap(), "salted");
        assert!(matches("a passkey".to_owned(), Some(hashed.clone())).await.unwrap());
        assert!(!matches("another".to_owned(), Some(hashed)).await.unwrap());
        assert!(!matches("a passkey".to_owned(), None).await.unwrap());
        assert!(!matches("a passkey".to_owned(), Some("no hash".to_owned())).await.unwrap());
    }
}
