//! Bytes become text: by what the server declared, by what the page declares, by what the bytes look like. Never fails;
//! what cannot be read shows as a replacement character.

use encoding_rs::{Encoding, UTF_8};

/// How far a page's own declaration may stand from its beginning, as browsers have it.
const LOOK_AT_BYTES: usize = 4096;

/// Text of bytes; `media_type` as declared, with its parameters.
#[must_use]
pub fn decode(body: &[u8], media_type: Option<&str>) -> String {
    if let Some((encoding, length)) = Encoding::for_bom(body) {
        return encoding.decode_without_bom_handling(&body[length..]).0.into_owned();
    }
    let declared = media_type.and_then(charset_of).or_else(|| declared_in(body));
    let encoding = match declared {
        // Many pages declare what they are not; UTF-8 that reads without a fault is UTF-8.
        _ if std::str::from_utf8(body).is_ok() => UTF_8,
        Some(encoding) => encoding,
        None => guess(body),
    };
    encoding.decode_without_bom_handling(body).0.into_owned()
}

fn charset_of(media_type: &str) -> Option<&'static Encoding> {
    let (_, after) =
        media_type.to_ascii_lowercase().split_once("charset=").map(|(a, b)| (a.to_owned(), b.to_owned()))?;
    let label = after.trim_start_matches(['"', '\'']);
    let end = label.find([';', '"', '\'', ' ', '>', '/']).unwrap_or(label.len());
    Encoding::for_label(label[..end].trim().as_bytes())
}

fn declared_in(body: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(&body[..body.len().min(LOOK_AT_BYTES)]);
    let low = head.to_ascii_lowercase();
    let at = low.find("<meta").and_then(|_| low.find("charset"))?;
    charset_of(&low[at..].replacen(' ', "", 2))
}

fn guess(body: &[u8]) -> &'static Encoding {
    let mut detector = chardetng::EncodingDetector::new(chardetng::Iso2022JpDetection::Allow);
    detector.feed(&body[..body.len().min(64 * 1024)], true);
    detector.guess(None, chardetng::Utf8Detection::Allow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_by_declaration_or_looks() {
        let (sjis, ..) = encoding_rs::SHIFT_JIS.encode("待つことは、働くことより速い場合があります。");
        assert_eq!(decode(&sjis, None), "待つことは、働くことより速い場合があります。");
        let (euc, ..) = encoding_rs::EUC_KR.encode("서울의 대기열은 길다");
        assert_eq!(decode(&euc, Some("text/html; charset=\"euc-kr\"")), "서울의 대기열은 길다");
        assert_eq!(decode(b"<meta charset=iso-8859-1>caf\xe9", Some("text/html")), "<meta charset=iso-8859-1>café");
        assert_eq!(decode("\u{feff}x".as_bytes(), None), "x");
        assert_eq!(decode("naïve".as_bytes(), Some("text/plain; charset=latin1")), "naïve");
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_break_it(body in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..600), media in "\\PC{0,40}") {
            let _ = decode(&body, Some(&media));
            let _ = decode(&body, None);
        }
    }
}
