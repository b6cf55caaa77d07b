//! WebSocket frames, as far as one question and its answer need them: text out, text in, pings passed over.

use tokio::io::{AsyncRead, AsyncReadExt};

const TEXT: u8 = 0x1;
const LAST: u8 = 0x80;
const MASKED: u8 = 0x80;

/// A text as a client sends it. The mask protects old proxies from what a page could make a browser send; we talk to
/// loopback and send our own words, so one mask is as good as another.
#[must_use]
pub fn text(payload: &[u8]) -> Vec<u8> {
    let mask = [0x6d, 0x61, 0x74, 0x73];
    let mut frame = head(payload.len(), MASKED);
    frame.extend(mask);
    frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

fn head(length: usize, masked: u8) -> Vec<u8> {
    let mut frame = vec![LAST | TEXT];
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short), _) if short < 126 => frame.push(masked | short),
        (_, Ok(middle)) => {
            frame.push(masked | 126);
            frame.extend(middle.to_be_bytes());
        }
        _ => {
            frame.push(masked | 127);
            frame.extend((length as u64).to_be_bytes());
        }
    }
    frame
}

/// A text as a server sends it.
#[cfg(test)]
#[must_use]
pub fn unmasked(payload: &[u8]) -> Vec<u8> {
    let mut frame = head(payload.len(), 0);
    frame.extend(payload);
    frame
}

/// The next whole text, of at most `bytes_max`.
///
/// # Errors
/// The stream's own; `InvalidData` for what is too long; `UnexpectedEof` when the other side closes.
pub async fn read(stream: &mut (impl AsyncRead + Unpin), bytes_max: usize) -> std::io::Result<Vec<u8>> {
    let mut message = Vec::new();
    loop {
        let (first, second) = (stream.read_u8().await?, stream.read_u8().await?);
        let length = match second & 0x7f {
            126 => u64::from(stream.read_u16().await?),
            127 => stream.read_u64().await?,
            short => u64::from(short),
        };
        let length = usize::try_from(length).ok().filter(|length| message.len().saturating_add(*length) <= bytes_max);
        let length = length.ok_or(std::io::ErrorKind::InvalidData)?;
        let mut mask = [0; 4];
        if second & MASKED != 0 {
            stream.read_exact(&mut mask).await?;
        }
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload).await?;
        for (byte, mask) in payload.iter_mut().zip(mask.iter().cycle()) {
            *byte ^= mask;
        }
        match first & 0x0f {
            0x8 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            0x0..=0x2 => message.extend(payload),
            // Pings and pongs stand between the parts of a message and are none of it.
            _ => continue,
        }
        if first & LAST != 0 {
            return Ok(message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn frames_of_every_length_come_back() {
        for length in [0, 5, 125, 126, 65_535, 65_536] {
            let payload = vec![b'x'; length];
            let frame = text(&payload);
            assert_eq!(read(&mut frame.as_slice(), 100_000).await.expect("a text"), payload);
        }
        assert!(read(&mut text(&[0; 20]).as_slice(), 10).await.is_err());
        let mut parts: &[u8] = &[0x01, 1, b'a', 0x89, 0, 0x80, 1, b'b'];
        assert_eq!(read(&mut parts, 10).await.expect("a text"), b"ab");
    }
}
