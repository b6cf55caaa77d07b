//! A way to reach a person: one message in, or why it did not arrive; and the answers that come back.

use async_trait::async_trait;

use crate::notify::{NoticeMessage, NoticeRules};

#[async_trait]
pub trait NoticeChannel: Send + Sync {
    /// The name under which it was configured.
    fn name(&self) -> &str;

    fn rules(&self) -> &NoticeRules;

    /// Whether its messages can carry buttons whose codes come back.
    fn has_replies(&self) -> bool {
        false
    }

    /// Sends one message. It may be called again with the same id. `reply_topic` is where answers come back, for
    /// channels that need a place for them.
    ///
    /// # Errors
    /// Why it did not arrive, in words for the person who configured the channel.
    async fn send(&self, message: &NoticeMessage, reply_topic: &str) -> Result<(), String>;

    /// Waits for codes that came after `position`, for at most about a minute.
    ///
    /// # Errors
    /// Why they could not be read.
    async fn replies(&self, _reply_topic: &str, _position: Option<&str>) -> Result<Replies, String> {
        Ok(Replies::default())
    }

    /// Shows the person what came of a code.
    async fn acknowledge(&self, _reply: &Reply, _text: &str) {}

    /// For a channel whose receivers are browsers that subscribe to it.
    fn subscribing(&self) -> Option<&dyn Subscribing> {
        None
    }
}

/// What a browser needs in order to subscribe.
pub trait Subscribing: Send + Sync {
    /// The public key of the sender, in base64url.
    fn public_key(&self) -> &str;

    /// Whether messages can be sent there.
    ///
    /// # Errors
    /// What is wrong with the address or with a key.
    fn check(&self, endpoint: &str, p256dh: &str, auth: &str) -> Result<(), String>;
}

/// Codes in the order in which they came, and where to read on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replies {
    pub codes: Vec<Reply>,
    pub position: Option<String>,
}

/// A code that came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub code: String,
    /// The channel's own id of the press of a button, for its acknowledgement.
    pub id: String,
}
