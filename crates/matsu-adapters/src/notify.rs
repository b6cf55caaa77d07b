//! Ways to reach a person: a command, the desktop, a webhook, ntfy, Telegram, web push.

mod command;
mod ntfy;
mod process;
mod push;
mod telegram;
mod webhook;

use std::path::PathBuf;
use std::sync::Arc;

use matsu_core::notify::NoticeRules;
use matsu_core::ports::notice_channel::NoticeChannel;
use matsu_core::ports::store::Store;

use crate::http::guard::Exception;
pub use webhook::Template;

/// How a channel reaches its person.
#[derive(Clone, Debug)]
pub enum Way {
    /// A line for the shell; the message comes as JSON on its stdin.
    Command(String),
    /// `notify-send`.
    Desktop,
    /// A POST, signed as Standard Webhooks where there is a secret.
    Webhook {
        url: String,
        secret: Option<String>,
        template: Template,
    },
    Ntfy {
        base_url: String,
        topic: String,
        token: Option<String>,
    },
    Telegram {
        base_url: String,
        chat: String,
        token: String,
    },
    /// To the browsers that have subscribed.
    Push {
        /// Made if it is missing.
        key_file: PathBuf,
        /// How push services reach the sender: an address that begins with `mailto:` or `https:`.
        contact: Option<String>,
        /// Push services that are not public.
        exceptions: Vec<Exception>,
    },
}

/// A channel as it was configured.
#[derive(Clone, Debug)]
pub struct ChannelConfig {
    pub name: String,
    pub way: Way,
    pub rules: NoticeRules,
}

/// Whether messages can be sent there: an address with `http` or `https` and a host.
#[must_use]
pub fn is_address(url: &str) -> bool {
    reqwest::Url::parse(url).is_ok_and(|url| ["http", "https"].contains(&url.scheme()) && url.has_host())
}

/// Opens a channel. The store is where browsers have subscribed.
///
/// # Errors
/// A secret that is not base64; a key that cannot be read or made; an HTTP client that cannot be built.
pub fn open(config: ChannelConfig, store: &Arc<dyn Store>) -> Result<Arc<dyn NoticeChannel>, String> {
    let ChannelConfig { name, way, rules } = config;
    Ok(match way {
        Way::Command(line) => Arc::new(command::Command { name, rules, line: Some(line) }),
        Way::Desktop => Arc::new(command::Command { name, rules, line: None }),
        Way::Webhook { url, secret, template } => Arc::new(webhook::Webhook::open(name, rules, url, secret, template)?),
        Way::Ntfy { base_url, topic, token } => Arc::new(ntfy::Ntfy::open(name, rules, &base_url, topic, token)?),
        Way::Telegram { base_url, chat, token } => {
            Arc::new(telegram::Telegram::open(name, rules, &base_url, chat, &token)?)
        }
        Way::Push { key_file, contact, exceptions } => {
            Arc::new(push::Push::open(name, rules, &key_file, contact, exceptions, Arc::clone(store))?)
        }
    })
}

/// The error of a request, with its cause and without the address, which may hold a secret.
fn in_words(error: reqwest::Error) -> String {
    let error = error.without_url();
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{error}{cause}")
}

/// What a receiver answered, as success or as a reason.
fn accepted(answer: Result<reqwest::Response, reqwest::Error>) -> Result<reqwest::Response, String> {
    let answer = answer.map_err(in_words)?;
    if answer.status().is_success() { Ok(answer) } else { Err(format!("the receiver answered {}", answer.status())) }
}

/// An option as the label of a button.
fn label(option: &str) -> String {
    option.chars().filter(|character| !character.is_control()).take(40).collect()
}
