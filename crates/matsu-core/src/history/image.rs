//! An image of a transcript. It is checked where it comes in, so that no vendor refuses a request because of it.

use serde::{Deserialize, Serialize};

use crate::limits::IMAGES_BYTES_MAX;

/// The kinds of images that a transcript can hold, by the bytes that they begin with.
const KINDS: [(&str, &[u8]); 3] =
    [("image/png", b"\x89PNG\r\n\x1a\n"), ("image/jpeg", b"\xff\xd8\xff"), ("image/gif", b"GIF8")];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    pub media_type: String,
    /// Base64.
    pub data: String,
}

impl Image {
    /// An image from its Base64. Its type is read from its bytes: vendors refuse an image that is not what it is called.
    ///
    /// # Errors
    /// In words: not Base64, not an image that models take, or too large.
    pub fn read(data: &str) -> Result<Self, String> {
        let data: String = data.chars().filter(|character| !character.is_ascii_whitespace()).collect();
        let bytes = decoded_bytes(&data);
        if bytes > IMAGES_BYTES_MAX {
            return Err(format!(
                "it has {}, and at most {} are allowed; make it smaller",
                kilobytes(bytes),
                kilobytes(IMAGES_BYTES_MAX)
            ));
        }
        if !is_base64(&data) {
            return Err("its data is not Base64; send the bytes of the image in standard Base64".to_owned());
        }
        match media_type(&head(&data)) {
            Some(media_type) => Ok(Self { media_type: media_type.to_owned(), data }),
            None => Err("its bytes are not a PNG, JPEG, GIF or WebP image; convert it to one of these".to_owned()),
        }
    }

    /// How large it is.
    #[must_use]
    pub fn bytes(&self) -> usize {
        decoded_bytes(&self.data)
    }

    /// Its type and size, as a reader sees it.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{}, {}", self.media_type, kilobytes(self.bytes()))
    }
}

fn kilobytes(bytes: usize) -> String {
    format!("{} kB", bytes.div_ceil(1_000))
}

fn media_type(head: &[u8]) -> Option<&'static str> {
    if head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP") {
        return Some("image/webp");
    }
    KINDS.iter().find(|(_, begins)| head.starts_with(begins)).map(|(media_type, _)| *media_type)
}

fn decoded_bytes(data: &str) -> usize {
    let padding = data.bytes().rev().take(2).take_while(|byte| *byte == b'=').count();
    (data.len() / 4 * 3).saturating_sub(padding)
}

fn is_base64(data: &str) -> bool {
    let body = data.trim_end_matches('=');
    data.len().is_multiple_of(4) && data.len() - body.len() <= 2 && body.bytes().all(|byte| value(byte).is_some())
}

/// The first twelve bytes, which is as many as tell the type.
fn head(data: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for quad in data.as_bytes().chunks(4).take(4) {
        let bits = quad.iter().fold(0_u32, |bits, byte| bits << 6 | value(*byte).unwrap_or(0));
        bytes.extend_from_slice(&bits.to_be_bytes()[1..]);
    }
    bytes
}

fn value(byte: u8) -> Option<u32> {
    let value = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_is_read_from_the_bytes() {
        let cases = [
            ("iVBORw0KGgoAAAANSUhEUg==", "image/png", 16),
            ("/9j/4AAQSkZJRgABAQAAAQ==", "image/jpeg", 16),
            ("R0lGODlhAQABAAAAACw=", "image/gif", 14),
            ("UklGRiQA\n\nAABXRUJQVlA4", "image/webp", 15),
        ];
        for (data, media_type, bytes) in cases {
            let image = Image::read(data).unwrap();
            assert_eq!((image.media_type.as_str(), image.bytes()), (media_type, bytes), "{data}");
        }
        assert_eq!(Image::read("iVBORw0KGgoAAAANSUhEUg==").unwrap().title(), "image/png, 1 kB");
    }

    #[test]
    fn what_is_no_image_is_refused_in_words() {
        let large = "A".repeat(IMAGES_BYTES_MAX.div_ceil(3) * 4 + 4);
        let cases = [
            ("", "not a PNG"),
            ("aGVsbG8=", "not a PNG"),
            ("iVBORw0KGg", "not Base64"),
            ("iVBORw0KGgo*", "not Base64"),
            ("====", "not Base64"),
            (large.as_str(), "make it smaller"),
        ];
        for (data, said) in cases {
            let refused = Image::read(data).unwrap_err();
            assert!(refused.contains(said), "{}: {refused}", &data[..data.len().min(20)]);
        }
    }
}
