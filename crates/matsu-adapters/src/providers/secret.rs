//! A key. It cannot be printed, neither by mistake nor by `{:?}` of something that holds it.

use std::fmt;

use matsu_core::redaction;

#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// White space around a key is a newline at the end of its file.
    #[must_use]
    pub fn new(text: &str) -> Self {
        redaction::remember("provider key", text);
        Self(text.trim().to_owned())
    }

    /// For the one header it goes into.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }

    /// `text` without the key, should a vendor have echoed it.
    pub(super) fn hide_in(&self, text: &str) -> String {
        if self.0.len() < 8 { text.to_owned() } else { text.replace(&self.0, "…") }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
