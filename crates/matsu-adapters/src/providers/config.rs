//! The configuration of one provider: its address, its wire format, which model, which bounds.

use std::path::PathBuf;
use std::time::Duration;

use matsu_core::limits::{MODEL_HEADERS_MAX, MODEL_IDLE_MAX};
use matsu_core::ports::provider::{ModelLimits, Price};

use super::secret::Secret;

/// A window that every current hosted model has.
const CONTEXT_TOKENS: u64 = 128_000;
const OUTPUT_TOKENS: u32 = 8_192;

#[derive(Clone, Debug)]
pub struct ProviderConfig {
    /// What it is called in chats.
    pub name: String,
    pub wire: String,
    /// Sent to the vendor letter for letter.
    pub model: String,
    /// Without it, the vendor's own.
    pub base_url: Option<String>,
    pub key: Option<Secret>,
    /// Where the key was looked for, for the error when there is none.
    pub key_source: KeySource,
    pub context_tokens: Option<u64>,
    /// Bounds an answer. Without it, the vendor's own bound where it has one.
    pub output_tokens: Option<u32>,
    /// Whether it is sent images. Without it, what its name says.
    pub images: Option<bool>,
    /// How hard to think, in the vendor's own word.
    pub effort: Option<String>,
    pub price: Option<Price>,
    pub headers_max: Duration,
    pub idle_max: Duration,
    /// The replies of a scripted provider.
    pub script: Option<PathBuf>,
}

/// Where a key comes from. Never from a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    Variable(String),
    File(PathBuf),
    /// It needs none.
    Nowhere,
}

impl ProviderConfig {
    pub fn new(name: impl Into<String>, wire: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            wire: wire.into(),
            model: model.into(),
            base_url: None,
            key: None,
            key_source: KeySource::Nowhere,
            context_tokens: None,
            output_tokens: None,
            images: None,
            effort: None,
            price: None,
            headers_max: MODEL_HEADERS_MAX,
            idle_max: MODEL_IDLE_MAX,
            script: None,
        }
    }

    /// Whether the model is sent images: what the configuration says, else what its name says.
    #[must_use]
    pub fn takes_images(&self) -> bool {
        self.images.unwrap_or_else(|| super::image_support::takes_images(self))
    }

    #[must_use]
    pub fn limits(&self) -> ModelLimits {
        ModelLimits {
            context_tokens: self.context_tokens.unwrap_or(CONTEXT_TOKENS),
            output_tokens: self.output_tokens.unwrap_or(OUTPUT_TOKENS),
        }
    }
}
