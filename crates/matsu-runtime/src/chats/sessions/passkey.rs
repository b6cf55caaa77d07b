//! Passkeys of agents: shown once, kept as an Argon2 hash, compared slowly and one at a time.
//!
//! What a comparison fills goes back to the system when it ends: the memory is taken in pieces that are too large for
//! the allocator to keep for the next thread that asks.

use std::sync::LazyLock;

use argon2::password_hash::{Decimal, Ident, Output, ParamsString, PasswordHash, Salt, SaltString};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use matsu_core::ports::store::StoreError;
use tokio::sync::Semaphore;

/// Each takes 19 MB and a core: a flood of passkeys must not take the machine.
static AT_ONCE: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(1));

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
    let argon = Argon2::default();
    let hash = filled(&argon, passkey, salt.as_salt()).map_err(defect)?;
    let mut params = ParamsString::new();
    for (name, value) in
        [("m", argon.params().m_cost()), ("t", argon.params().t_cost()), ("p", argon.params().p_cost())]
    {
        params.add_decimal(Ident::new(name).map_err(defect)?, Decimal::from(value)).map_err(defect)?;
    }
    let (algorithm, version) = (Algorithm::default().ident(), Some(Version::default().into()));
    let whole = PasswordHash { algorithm, version, params, salt: Some(salt.as_salt()), hash: Some(hash) };
    Ok(whole.to_string())
}

fn matches_now(passkey: &str, hash: &str) -> Option<bool> {
    let known = PasswordHash::new(hash).ok()?;
    let algorithm = Algorithm::try_from(known.algorithm).ok()?;
    let version = known.version.map_or(Ok(Version::default()), Version::try_from).ok()?;
    let argon = Argon2::new(algorithm, version, Params::try_from(&known).ok()?);
    // Compared in constant time.
    Some(filled(&argon, passkey, known.salt?).ok()? == known.hash?)
}

/// The GNU allocator gives pieces above 32 MiB back to the system when they are freed. Smaller ones it keeps, for each
/// thread anew. What lies above the blocks is never touched, so it takes no memory.
const GIVEN_BACK_FROM: usize = 33 * 1024 * 1024 / Block::SIZE;

fn filled(argon: &Argon2<'_>, passkey: &str, salt: Salt<'_>) -> Result<Output, argon2::password_hash::Error> {
    let mut open_chat = [0; Salt::MAX_LENGTH];
    let salt = salt.decode_b64(&mut open_chat)?;
    let mut blocks: Vec<Block> = Vec::with_capacity(GIVEN_BACK_FROM.max(argon.params().block_count()));
    blocks.resize(argon.params().block_count(), Block::new());
    let bytes = argon.params().output_len().unwrap_or(Params::DEFAULT_OUTPUT_LEN);
    Output::init_with(bytes, |out| {
        Ok(argon.hash_password_into_with_memory(passkey.as_bytes(), salt, out, &mut blocks)?)
    })
}

/// Whether the passkey is the one. Without a hash the answer is no, and takes as long: an unknown agent cannot be
/// distinguished from a wrong passkey.
pub async fn matches(passkey: String, hash: Option<String>) -> Result<bool, StoreError> {
    let compare = move || match hash {
        Some(hash) => matches_now(&passkey, &hash).unwrap_or(false),
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

    #[test]
    fn what_the_library_hashed_before_still_matches() {
        use argon2::password_hash::{PasswordHasher, PasswordVerifier};
        let salt = SaltString::from_b64("c29tZXNhbHRzb21lc2FsdA").unwrap();
        let theirs = Argon2::default().hash_password(b"a passkey", &salt).unwrap().to_string();
        assert_eq!(matches_now("a passkey", &theirs), Some(true));
        assert_eq!(matches_now("another", &theirs), Some(false));
        let ours = hash_now("a passkey").unwrap();
        assert!(Argon2::default().verify_password(b"a passkey", &PasswordHash::new(&ours).unwrap()).is_ok());
    }
}
