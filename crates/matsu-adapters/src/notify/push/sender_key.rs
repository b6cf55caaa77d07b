//! The key by which push services know this installation (VAPID, RFC 8292). It is made once and kept in a file that
//! only its user can read: browsers subscribe to this one sender, so another key would reach none of them.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::json;
use url::Url;

use matsu_core::clock::Timestamp;

/// How long a signature is good; push services refuse more than a day.
const SIGNED_FOR: Duration = Duration::from_secs(12 * 3600);

pub struct SenderKey {
    pair: EcdsaKeyPair,
    public: String,
}

impl SenderKey {
    /// Reads the file, or makes it.
    pub fn open(file: &Path) -> Result<Self, String> {
        let shown = file.display();
        if !file.exists() {
            make(file).map_err(|error| format!("the key for push messages cannot be written to {shown}: {error}"))?;
        }
        let text = std::fs::read_to_string(file);
        let text = text.map_err(|error| format!("the key for push messages cannot be read from {shown}: {error}"))?;
        let bad = || format!("{shown} has no key for push messages; remove it, and browsers subscribe again");
        let document = BASE64_URL_SAFE_NO_PAD.decode(text.trim()).map_err(|_| bad())?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &document, &SystemRandom::new());
        let pair = pair.map_err(|_| bad())?;
        let public = BASE64_URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
        Ok(Self { pair, public })
    }

    /// In base64url, as browsers take it.
    pub fn public(&self) -> &str {
        &self.public
    }

    /// The value of `Authorization` for a push service.
    pub fn authorization(&self, endpoint: &Url, contact: Option<&str>, now: Timestamp) -> Result<String, String> {
        let mut claims = json!({
            "aud": endpoint.origin().ascii_serialization(),
            "exp": now.plus(SIGNED_FOR).as_millis() / 1_000,
        });
        if let Some(contact) = contact {
            claims["sub"] = json!(contact);
        }
        let part = |value: serde_json::Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(json!({ "typ": "JWT", "alg": "ES256" })), part(claims));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes());
        let signature = signature.map_err(|_| "a push message could not be signed".to_owned())?;
        let signature = BASE64_URL_SAFE_NO_PAD.encode(signature.as_ref());
        Ok(format!("vapid t={signed}.{signature}, k={}", self.public))
    }
}

/// Two processes may start at once: the one that comes second takes what the first has written.
fn make(file: &Path) -> std::io::Result<()> {
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
    let document = document.map_err(|_| std::io::Error::other("no key could be made"))?;
    let new = file.with_added_extension(std::process::id().to_string());
    let _ = std::fs::remove_file(&new);
    let mut opened = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&new)?;
    opened.write_all(BASE64_URL_SAFE_NO_PAD.encode(document.as_ref()).as_bytes())?;
    opened.sync_all()?;
    let linked = std::fs::hard_link(&new, file);
    std::fs::remove_file(&new)?;
    if file.exists() { Ok(()) } else { linked }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_made_once_for_its_user_alone_and_a_broken_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("push-key");
        let first = SenderKey::open(&file).unwrap();
        assert_eq!(SenderKey::open(&file).unwrap().public(), first.public());
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
        std::fs::write(&file, "x").unwrap();
        let error = SenderKey::open(&file).err().unwrap();
        assert!(error.contains("push-key has no key for push messages"), "{error}");
    }
}
