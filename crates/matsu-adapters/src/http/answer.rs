//! An answer of a server, read with bounds: no more bytes than allowed, whatever its headers promise and however small
//! it was packed.

use std::time::Duration;

use futures_util::StreamExt;
use matsu_core::ports::fetcher::FetchError;

/// Status, headers and body of an answer.
#[derive(Clone, Debug)]
pub struct HttpReply {
    pub status: u16,
    /// Names in lower case; values that are not text are left out.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl HttpReply {
    /// Reads the answer to `request`, at most `bytes_max` of its body after unpacking.
    ///
    /// # Errors
    /// [`FetchError::TooLarge`], or [`FetchError::Failed`] with a reason that names no address.
    pub async fn read(request: reqwest::RequestBuilder, bytes_max: usize) -> Result<Self, FetchError> {
        let answer = request.send().await.map_err(|error| failed(&error))?;
        let status = answer.status().as_u16();
        let headers = answer
            .headers()
            .iter()
            .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())))
            .collect();
        if answer.content_length().is_some_and(|length| length > bytes_max as u64) {
            return Err(FetchError::TooLarge);
        }
        let mut body = Vec::new();
        let mut chunks = answer.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| failed(&error))?;
            if body.len() + chunk.len() > bytes_max {
                return Err(FetchError::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Self { status, headers, body })
    }

    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// `Retry-After`, in seconds or as a date. A date is measured from the answer's own `Date`, so that a wrong clock
    /// on either side does not matter.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let text = self.header("retry-after")?.trim();
        if let Ok(seconds) = text.parse() {
            return Some(Duration::from_secs(seconds));
        }
        let (until, from) = (http_date(text)?, http_date(self.header("date")?)?);
        Some(Duration::from_secs(u64::try_from(until.as_second().saturating_sub(from.as_second())).unwrap_or(0)))
    }
}

fn http_date(text: &str) -> Option<jiff::Timestamp> {
    jiff::fmt::rfc2822::DateTimeParser::new().relaxed_weekday(true).parse_timestamp(text.replace("GMT", "+0000")).ok()
}

/// The reason at the root, and nothing else: the outer layers repeat the address, which may carry what is private.
fn failed(error: &reqwest::Error) -> FetchError {
    let mut source: &(dyn std::error::Error + 'static) = error;
    while let Some(inner) = source.source() {
        source = inner;
    }
    if let Some(io) = source.downcast_ref::<std::io::Error>()
        && io.kind() == std::io::ErrorKind::PermissionDenied
    {
        return FetchError::Refused(io.to_string());
    }
    if let Some(refusal) = source.downcast_ref::<super::guard::Refusal>() {
        return FetchError::Refused(refusal.to_string());
    }
    FetchError::Failed(cause(error, source))
}

/// The cause in words that name no address.
fn cause(error: &reqwest::Error, root: &(dyn std::error::Error + 'static)) -> String {
    use std::io::ErrorKind;
    let io = root.downcast_ref::<std::io::Error>();
    match io.map(std::io::Error::kind) {
        _ if error.is_timeout() => "no answer in time".to_owned(),
        Some(ErrorKind::ConnectionRefused) => "connection refused: nothing answers at this address".to_owned(),
        Some(ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof) => "the connection was cut".to_owned(),
        _ if root.to_string().contains("lookup address") => {
            "unknown host name (DNS): check the spelling of the address".to_owned()
        }
        _ => root.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(headers: &[(&str, &str)]) -> HttpReply {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        HttpReply { status: 429, headers, body: Vec::new() }
    }

    #[test]
    fn retry_after_is_read_in_seconds_and_as_a_date() {
        let date = ("date", "Wed, 21 Oct 2015 07:28:00 GMT");
        for (header, seconds) in
            [("2", 2), (" 120 ", 120), ("Wed, 21 Oct 2015 07:28:30 GMT", 30), ("Wed, 21 Oct 2015 07:27:00 GMT", 0)]
        {
            let read = answer(&[date, ("retry-after", header)]).retry_after();
            assert_eq!(read, Some(Duration::from_secs(seconds)), "{header}");
        }
        assert_eq!(answer(&[date, ("retry-after", "soon")]).retry_after(), None);
        assert_eq!(answer(&[date]).retry_after(), None);
    }
}
