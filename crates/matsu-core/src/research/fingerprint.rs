//! Fingerprints: what two texts or pages are compared by. The same text has the same one, over all releases.

use sha2::{Digest, Sha256};

/// SHA-256 in hex.
#[must_use]
pub fn fingerprint(content: impl AsRef<[u8]>) -> String {
    Sha256::digest(content.as_ref()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_sha_256_digest_in_hex() {
        assert_eq!(fingerprint("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
