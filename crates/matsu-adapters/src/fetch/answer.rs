//! An answer of a server, read with bounds: no more bytes than allowed, whatever its headers promise and however small
//! it was packed.

use std::time::Duration;

use futures_util::StreamExt;
use matsu_core::ports::fetcher::FetchError;

/// Status, headers and body of an answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    /// Names in lower case; values that are not text are left out.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
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

    /// `Retry-After` in seconds; the form with a date is rare enough to be left to the caller's own pace.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.header("retry-after")?.trim().parse().ok().map(Duration::from_secs)
    }
}

/// The reason at the root, and nothing else: the outer layers repeat the address, which may carry what is private.
fn failed(error: &reqwest::Error) -> FetchError {
    let mut source: &dyn std::error::Error = error;
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
    FetchError::Failed(if error.is_timeout() { "no answer in time".to_owned() } else { source.to_string() })
}
