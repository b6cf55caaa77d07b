//! What a reader process is asked and what it answers, as bytes. A request is a length, a JSON head of that length and
//! the body whose length the head names; an answer is a length and JSON of that length. Lengths are four bytes, the
//! least significant first.

use std::io::{self, Read, Write};

use matsu_core::ports::extractor::ExtractError;
use matsu_core::research::document::Document;
use serde::{Deserialize, Serialize};

/// Longest head of a request: an address and a media type.
pub const HEAD_BYTES_MAX: usize = 1024 * 1024;
/// Largest document that is read at all.
pub const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Largest answer. A document whose text is larger than this is an error.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What is to be found out about a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Want {
    Document,
    VisibleChars,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub want: Want,
    pub media_type: String,
    pub body: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReaderReply {
    Document(Document),
    VisibleChars(usize),
}

/// A request without its body.
#[derive(Serialize, Deserialize)]
struct Head {
    want: Want,
    media_type: String,
    body_bytes: usize,
}

impl Request {
    /// Everything that goes before the body.
    ///
    /// # Errors
    /// The request is larger than a reader takes.
    pub fn head(&self) -> io::Result<Vec<u8>> {
        let head = Head { want: self.want, media_type: self.media_type.clone(), body_bytes: self.body.len() };
        let head = serde_json::to_vec(&head).map_err(io::Error::other)?;
        if head.len() > HEAD_BYTES_MAX || self.body.len() > BODY_BYTES_MAX {
            return Err(io::Error::other("the document is larger than a reader accepts"));
        }
        Ok(framed(&head))
    }

    /// `None`: there is no further request.
    ///
    /// # Errors
    /// The input ended in the middle of a request, or is none.
    pub fn read(input: &mut impl Read) -> io::Result<Option<Self>> {
        let mut length = [0; 4];
        if input.read(&mut length[..1])? == 0 {
            return Ok(None);
        }
        input.read_exact(&mut length[1..])?;
        let head: Head = parse(&take(input, u32::from_le_bytes(length) as usize, HEAD_BYTES_MAX)?)?;
        let body = take(input, head.body_bytes, BODY_BYTES_MAX)?;
        Ok(Some(Self { want: head.want, media_type: head.media_type, body }))
    }
}

/// An answer as it is sent. One that is too large is sent as an error.
///
/// # Errors
/// It cannot be written as JSON.
pub fn framed_answer(answer: &Result<ReaderReply, ExtractError>) -> io::Result<Vec<u8>> {
    let bytes = serde_json::to_vec(answer).map_err(io::Error::other)?;
    if bytes.len() <= ANSWER_BYTES_MAX {
        return Ok(framed(&bytes));
    }
    let why = format!("its text is larger than {} MiB", ANSWER_BYTES_MAX / 1024 / 1024);
    let too_large: Result<ReaderReply, ExtractError> = Err(ExtractError::Malformed(why));
    Ok(framed(&serde_json::to_vec(&too_large).map_err(io::Error::other)?))
}

/// An answer without its length.
///
/// # Errors
/// The bytes are none.
pub fn parse_answer(bytes: &[u8]) -> io::Result<Result<ReaderReply, ExtractError>> {
    parse(bytes)
}

/// Answers requests until there are no more. `begin` is called before each is read into a document.
///
/// # Errors
/// The streams broke, or what came is no request.
pub fn serve(
    input: &mut impl Read,
    output: &mut impl Write,
    mut begin: impl FnMut() -> io::Result<()>,
) -> io::Result<()> {
    while let Some(request) = Request::read(input)? {
        begin()?;
        let answer = crate::answer(&request);
        // What was read is no longer needed, and the answer may be as large.
        drop(request);
        output.write_all(&framed_answer(&answer)?)?;
        output.flush()?;
    }
    Ok(())
}

fn framed(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    [&length.to_le_bytes(), bytes].concat()
}

fn take(input: &mut impl Read, length: usize, length_max: usize) -> io::Result<Vec<u8>> {
    if length > length_max {
        return Err(io::Error::other("the request is larger than a reader accepts"));
    }
    let mut bytes = vec![0; length];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn parse<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    serde_json::from_slice(bytes).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(want: Want, body: &[u8]) -> Request {
        Request { want, media_type: "text/markdown".to_owned(), body: body.to_vec() }
    }

    fn bytes_of(request: &Request) -> Vec<u8> {
        [request.head().unwrap(), request.body.clone()].concat()
    }

    #[test]
    fn requests_are_answered_in_their_order() {
        let asked = [bytes_of(&request(Want::Document, b"# One")), bytes_of(&request(Want::Document, b""))].concat();
        let mut output = Vec::new();
        let mut begun = 0;
        serve(&mut asked.as_slice(), &mut output, || {
            begun += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!(begun, 2);
        let mut answers = Vec::new();
        let mut rest = output.as_slice();
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let (answer, after) = after.split_at(u32::from_le_bytes(*length) as usize);
            answers.push(parse_answer(answer).unwrap());
            rest = after;
        }
        assert!(matches!(&answers[0], Ok(ReaderReply::Document(document)) if document.title == "One"), "{answers:?}");
        assert_eq!(answers[1], Err(ExtractError::Empty));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let whole = bytes_of(&request(Want::Document, b"text"));
        assert_eq!(Request::read(&mut [].as_slice()).unwrap(), None);
        assert!(Request::read(&mut &whole[..whole.len() - 1]).is_err());
        assert!(Request::read(&mut [0xff; 40].as_slice()).is_err());
        let large = br#"{"want":"document","media_type":"a","body_bytes":99999999999}"#;
        assert!(Request::read(&mut framed(large).as_slice()).is_err());
    }
}
