//! Secrets that open something: how they are made, and what a store may keep of them.

use sha2::{Digest, Sha256};

/// 256 random bits in hex.
#[must_use]
pub fn mint() -> String {
    let mut bytes = [0_u8; 32];
    #[expect(clippy::expect_used, reason = "a process without entropy must not hand out guessable keys")]
    getrandom::fill(&mut bytes).expect("the operating system gives randomness");
    hex(&bytes)
}

/// What a store keeps of a minted secret. It has 256 random bits, so a slow hash would add nothing.
#[must_use]
pub fn hash(secret: &str) -> String {
    hex(&Sha256::digest(secret.as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::{hash, mint};

    #[test]
    fn a_secret_is_long_and_never_repeats() {
        assert_eq!(mint().len(), 64);
        assert_ne!(mint(), mint());
        assert_eq!(hash("a").len(), 64);
        assert_ne!(hash("a"), hash("b"));
    }
}
