//! Secrets that open something: how they are made, and what a store may keep of them.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::redaction;

/// 256 random bits in hex. No text of this process shows them from now on.
#[must_use]
pub fn mint() -> String {
    let mut bytes = [0_u8; 32];
    #[expect(clippy::expect_used, reason = "a process without entropy must not create guessable keys")]
    getrandom::fill(&mut bytes).expect("the operating system gives randomness");
    let secret = hex(&bytes);
    redaction::remember_made("token", &secret);
    secret
}

/// 128 random bits in hex, for a code that is used once.
#[must_use]
pub fn code() -> String {
    let mut bytes = [0_u8; 16];
    #[expect(clippy::expect_used, reason = "a process without entropy must not create guessable codes")]
    getrandom::fill(&mut bytes).expect("the operating system gives randomness");
    hex(&bytes)
}

/// A secret on its way to its owner. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Arc<str>);

impl Token {
    #[must_use]
    pub fn new(secret: &str) -> Self {
        Self(secret.into())
    }

    #[must_use]
    pub fn reveal(&self) -> &Arc<str> {
        &self.0
    }

    /// Whether this is the secret. Hashes are compared, in full: how long it takes reveals nothing about the secret.
    #[must_use]
    pub fn matches(&self, presented: &str) -> bool {
        let (own, other) = (Sha256::digest(self.0.as_bytes()), Sha256::digest(presented.as_bytes()));
        own.iter().zip(other.iter()).fold(0, |differs, (own, other)| differs | (own ^ other)) == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
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
    use super::{Token, code, hash, mint};

    #[test]
    fn a_token_is_never_printed() {
        let token = Token::new("secret");
        assert_eq!((format!("{token:?}").as_str(), &**token.reveal()), ("Token(…)", "secret"));
    }

    #[test]
    fn a_token_matches_itself_and_nothing_else() {
        let token = Token::new("secret");
        assert!(token.matches("secret"));
        for other in ["", "secre", "secrets", "Secret"] {
            assert!(!token.matches(other), "{other}");
        }
    }

    #[test]
    fn a_secret_is_long_and_never_repeats() {
        assert_eq!(mint().len(), 64);
        assert_ne!(mint(), mint());
        assert_ne!(code(), code());
        assert_eq!((code().len(), hash("a").len()), (32, 64));
        assert_ne!(hash("a"), hash("b"));
    }
}
