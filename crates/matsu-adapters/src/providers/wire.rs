//! A wire format: where a request goes, what it contains, and how the answer is read. Pure; [`super::exchange`] carries
//! it.

use matsu_core::history::{Entry, Maker};
use matsu_core::ports::provider::{ModelEvent, ModelRequest, ModelTurn};
use serde_json::Value;

use super::config::ProviderConfig;
use super::formats;
use super::refusal::Fault;

/// Every wire format but the scripted one. Adding one: a file in `formats/`, a file in `decoders/`, a line here.
pub static WIRES: &[&dyn Wire] = &[
    &formats::openai_responses::OpenAiResponses,
    &formats::openai_chat::OpenAiChat,
    &formats::anthropic::Anthropic,
    &formats::gemini::Gemini,
    &formats::ollama::Ollama,
];

pub trait Wire: Send + Sync {
    /// Its word in the configuration.
    fn name(&self) -> &'static str;

    /// The vendor's own address.
    fn base_url(&self) -> &'static str;

    /// Path below the base address.
    fn path(&self, model: &str) -> String;

    /// The header that carries the key, and what stands before the key in it.
    fn key_header(&self) -> (&'static str, &'static str) {
        ("authorization", "Bearer ")
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// History alone, in this vendor's shape.
    fn format_history(&self, history: &[Entry], reader: &Reader) -> Value;

    /// The whole request.
    fn body(&self, config: &ProviderConfig, request: &ModelRequest) -> Value;

    /// The media types of images that the vendor's models take, as far as they take images.
    fn image_types(&self) -> &'static [&'static str] {
        &["image/png", "image/jpeg", "image/gif", "image/webp"]
    }

    fn framing(&self) -> Framing;

    fn decoder(&self) -> Box<dyn Decoder>;
}

/// How a stream is cut into pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    ServerSentEvents,
    /// One JSON document to a line.
    Lines,
}

/// The model that a history is written for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reader {
    /// Its name in the chat.
    pub name: String,
    pub maker: Maker,
}

impl Reader {
    #[must_use]
    pub fn of(config: &ProviderConfig) -> Self {
        let maker = Maker { wire: config.wire.clone(), model: config.model.clone() };
        Self { name: config.name.clone(), maker }
    }
}

/// Reads one stream. Whatever comes, it answers or refuses; it never panics.
pub trait Decoder: Send {
    /// Takes one piece. What it shows goes to `out`.
    ///
    /// # Errors
    /// The stream is of no use from here on.
    fn feed(&mut self, data: &str, out: &mut Vec<ModelEvent>) -> Result<Progress, Fault>;

    /// The stream has ended: the turn, if the vendor's own end mark had come.
    ///
    /// # Errors
    /// It had not, or what came makes no turn.
    fn finish(self: Box<Self>) -> Result<ModelTurn, Fault>;
}

/// Whether more is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    More,
    Complete,
}

/// What an unreadable piece is.
pub(super) fn parse_piece(data: &str) -> Result<Value, Fault> {
    serde_json::from_str(data).map_err(|error| Fault::protocol(format!("a piece of the answer is not JSON: {error}")))
}
