//! A message that only one browser can read: RFC 8291, with one record of `aes128gcm` (RFC 8188).

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral};
use ring::error::Unspecified;
use ring::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use ring::rand::{SecureRandom, SystemRandom};

/// A point of P-256, uncompressed.
const POINT_BYTES: usize = 65;
const AUTH_BYTES: usize = 16;
const SALT_BYTES: usize = 16;
const CONTENT_KEY_BYTES: usize = 16;

/// Push services take bodies of 4,096 bytes; the header, the mark of the last record and the tag are part of it.
const RECORD_BYTES: u32 = 4_096;
pub const PLAIN_BYTES_MAX: usize = 4_096 - SALT_BYTES - 4 - 1 - POINT_BYTES - 1 - 16;

/// The keys of a browser.
pub struct Receiver {
    point: [u8; POINT_BYTES],
    auth: [u8; AUTH_BYTES],
}

impl Receiver {
    /// Both as a browser gives them, in base64url.
    pub fn parse(p256dh: &str, auth: &str) -> Result<Self, String> {
        let bytes = |name: &str, text: &str| {
            let wrong = |_| format!("{name} is not base64url; expected what the browser's PushSubscription has");
            BASE64_URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).map_err(wrong)
        };
        let (point, auth) = (bytes("p256dh", p256dh)?, bytes("auth", auth)?);
        let (point_bytes, auth_bytes) = (point.len(), auth.len());
        let wrong = |name: &str, got, expected| format!("{name} has {got} bytes; expected {expected}");
        let receiver = Self {
            point: point.try_into().map_err(|_| wrong("p256dh", point_bytes, POINT_BYTES))?,
            auth: auth.try_into().map_err(|_| wrong("auth", auth_bytes, AUTH_BYTES))?,
        };
        // Whether it lies on the curve is found out by using it.
        receiver.seal(b"").map_err(|_| "p256dh is not a point of the curve P-256".to_owned())?;
        Ok(receiver)
    }

    /// The body of a request to the push service.
    pub fn seal(&self, plain: &[u8]) -> Result<Vec<u8>, Unspecified> {
        let random = SystemRandom::new();
        let own = EphemeralPrivateKey::generate(&ECDH_P256, &random)?;
        let own_point = own.compute_public_key()?;
        let theirs = UnparsedPublicKey::new(&ECDH_P256, self.point);
        let both = agree_ephemeral(own, &theirs, |shared| {
            let info: [&[u8]; 3] = [b"WebPush: info\0", &self.point, own_point.as_ref()];
            expand::<32>(&Salt::new(HKDF_SHA256, &self.auth).extract(shared), &info)
        })??;
        let mut salt = [0; SALT_BYTES];
        random.fill(&mut salt)?;
        let secret = Salt::new(HKDF_SHA256, &salt).extract(&both);
        let key = expand::<CONTENT_KEY_BYTES>(&secret, &[b"Content-Encoding: aes128gcm\0"])?;
        let nonce = expand::<NONCE_LEN>(&secret, &[b"Content-Encoding: nonce\0"])?;

        let mut record = plain.to_vec();
        // Marks the last record; nothing is padded, since what a notice says has its own bounds.
        record.push(2);
        let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key)?);
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut record)?;
        let point = own_point.as_ref();
        let id_bytes = u8::try_from(point.len()).map_err(|_| Unspecified)?;
        Ok([&salt[..], &RECORD_BYTES.to_be_bytes(), &[id_bytes], point, &record].concat())
    }
}

struct Bytes(usize);

impl KeyType for Bytes {
    fn len(&self) -> usize {
        self.0
    }
}

fn expand<const N: usize>(from: &Prk, info: &[&[u8]]) -> Result<[u8; N], Unspecified> {
    let mut out = [0; N];
    from.expand(info, Bytes(N))?.fill(&mut out)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_no_browser_gives_are_refused_in_words() {
        let text = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
        let own = EphemeralPrivateKey::generate(&ECDH_P256, &SystemRandom::new()).unwrap();
        let (point, auth) = (text(own.compute_public_key().unwrap().as_ref()), text(&[7; AUTH_BYTES]));
        let refused = |point: &str, auth: &str| Receiver::parse(point, auth).err().unwrap_or_default();
        assert_eq!(refused(&point, &auth), "");
        assert_eq!(refused(&format!("{point}="), &format!("{auth}==")), "", "padding does no harm");
        assert!(refused("not base64!", &auth).contains("p256dh is not base64url"));
        assert_eq!(refused(&text(&[4; 33]), &auth), "p256dh has 33 bytes; expected 65");
        assert_eq!(refused(&point, &text(&[1; 8])), "auth has 8 bytes; expected 16");
        assert!(refused(&text(&[4; POINT_BYTES]), &auth).contains("curve"), "a point beside the curve");
    }

    #[test]
    fn a_message_of_the_greatest_length_fits_into_one_request() {
        let own = EphemeralPrivateKey::generate(&ECDH_P256, &SystemRandom::new()).unwrap();
        let point = own.compute_public_key().unwrap().as_ref().try_into().unwrap();
        let sealed = Receiver { point, auth: [1; AUTH_BYTES] }.seal(&[b'x'; PLAIN_BYTES_MAX]).unwrap();
        assert_eq!(sealed.len(), RECORD_BYTES as usize);
    }
}
