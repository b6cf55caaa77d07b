//! Whether a file that calls itself a text is one: a program or an image that was renamed is not read as words.

/// Bytes that are looked at, from the beginning.
const LOOKED_AT: usize = 64 * 1024;
/// One control character in so many bytes is more than a text has; escape sequences of a log stay below it.
const CONTROLS_EVERY: usize = 5;

/// Whether what has this media type is text without a structure of its own.
pub fn is_plain(media_type: &str) -> bool {
    let kind = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    matches!(kind.as_str(), "text/plain" | "text/markdown") && !is_declared_wide(media_type)
}

/// Every other byte of such a text may be zero.
fn is_declared_wide(media_type: &str) -> bool {
    let low = media_type.to_ascii_lowercase();
    low.contains("utf-16") || low.contains("utf-32") || low.contains("ucs-2")
}

/// No zero bytes and few control characters. What begins with the mark of UTF-16 is a text.
pub fn is_text(body: &[u8]) -> bool {
    if body.starts_with(&[0xff, 0xfe]) || body.starts_with(&[0xfe, 0xff]) {
        return true;
    }
    let looked_at = &body[..body.len().min(LOOKED_AT)];
    // ESC begins the characters of ISO-2022-JP, and the colours of a log.
    let is_control = |byte: &u8| matches!(byte, 1..=8 | 14..=26 | 28..=31 | 127);
    let controls = looked_at.iter().filter(|byte| is_control(byte)).count();
    !looked_at.contains(&0) && controls * CONTROLS_EVERY <= looked_at.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renamed_binary_is_no_text() {
        let wide: Vec<u8> = [0xff, 0xfe].into_iter().chain("wide".encode_utf16().flat_map(u16::to_le_bytes)).collect();
        // 待つ in Shift_JIS.
        let shift_jis = [0x91, 0xd2, 0x82, 0xc2];
        for text in
            [&b""[..], b"plain\r\n\ttext\x0c", "naïve – 待つ".as_bytes(), &wide, &shift_jis, b"\x1b[31mred\x1b[0m"]
        {
            assert!(is_text(text), "{text:?}");
        }
        for binary in [&b"\x7fELF\x02\x01\x01\0\0\0"[..], b"words and then\0nothing", b"\x01\x02\x03\x04ab"] {
            assert!(!is_text(binary), "{binary:?}");
        }
        assert!(is_plain("text/markdown; charset=utf-8") && !is_plain("text/plain; charset=UTF-16LE"));
        assert!(!is_plain("application/pdf") && !is_plain("text/html"));
    }
}
