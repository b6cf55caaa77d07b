//! Channels to people in the configuration: one section `notify.NAME` each.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use matsu_adapters::http::guard::Exception;
use matsu_adapters::notify::{ChannelConfig, Template, Way, is_address};
use matsu_core::notify::{NoticeContent, NoticeEvent, NoticeRules};
use matsu_core::principal::Principal;

use super::providers::{Field, Sections, insert};

pub const FIELDS: &[Field] = &[
    Field { name: "kind", meaning: "the kind of the channel: command, desktop, webhook, ntfy, telegram or push" },
    Field {
        name: "events",
        meaning: "the events to send: done, failed, asks, budget, quota, separated by commas; by default all",
    },
    Field { name: "agents", meaning: "only tasks of these agents, separated by commas" },
    Field { name: "projects", meaning: "only tasks of these projects, separated by commas" },
    Field { name: "min_seconds", meaning: "only tasks that took at least this many seconds" },
    Field { name: "read", meaning: "on: also tasks whose end an agent or a person has read within three seconds" },
    Field {
        name: "content",
        meaning: "how much a message contains: none, title or full; by default full for command and desktop, title for the others",
    },
    Field {
        name: "user",
        meaning: "the user whose tasks the channel reports; by default the owner of this installation",
    },
    Field { name: "command", meaning: "command: the shell command; it gets the message as JSON on stdin" },
    Field {
        name: "url",
        meaning: "webhook: the address to send to; ntfy and telegram: the server, by default https://ntfy.sh and https://api.telegram.org",
    },
    Field { name: "template", meaning: "webhook: the format, standard (the default), slack, discord or teams" },
    Field { name: "topic", meaning: "ntfy: the topic; everyone who knows it can read it" },
    Field { name: "chat", meaning: "telegram: the id of the chat that the bot writes to" },
    Field {
        name: "contact",
        meaning: "push: your contact for the push services, mailto:… or https:…; some services refuse senders without it",
    },
    Field {
        name: "allow_hosts",
        meaning: "push: push services that are not public, as host or host:port, separated by commas",
    },
    Field { name: "secret_env", meaning: "the environment variable with the webhook's secret or the token" },
    Field {
        name: "secret_file",
        meaning: "a file with that secret and nothing else; only you should be able to read it",
    },
];

/// The fields of some kinds only; the others are for all.
const OF_KINDS: &[(&str, &[&str])] = &[
    ("command", &["command"]),
    ("url", &["webhook", "ntfy", "telegram"]),
    ("template", &["webhook"]),
    ("topic", &["ntfy"]),
    ("chat", &["telegram"]),
    ("contact", &["push"]),
    ("allow_hosts", &["push"]),
    ("secret_env", &["webhook", "ntfy", "telegram"]),
    ("secret_file", &["webhook", "ntfy", "telegram"]),
];

/// Takes `NAME.FIELD` of the file into its section.
pub fn take(sections: &mut Sections, dotted: &str, value: String, file: &Path) -> Result<()> {
    let Some((name, field)) = dotted.rsplit_once('.') else {
        bail!("{}: notify.{dotted} must be a section, [notify.{dotted}]", file.display());
    };
    let legal = |character: char| character.is_ascii_alphanumeric() || "_-".contains(character);
    if name.is_empty() || !name.chars().all(legal) {
        bail!("{}: {name:?} cannot be the name of a channel; use letters, digits, _ and -", file.display());
    }
    if !FIELDS.iter().any(|known| known.name == field) {
        let names = FIELDS.iter().map(|known| known.name).collect::<Vec<_>>().join(", ");
        bail!("{}: notify.{name} has no {field}; it has {names}", file.display());
    }
    if field == "url" && !value.is_empty() && !is_address(&value) {
        // The rest of an address is often a secret.
        let head = value.split_inclusive(['/', '?', '@']).next().unwrap_or_default();
        let rest = if head.len() < value.len() { "…" } else { "" };
        bail!(
            "{}: notify.{name}.url must be an address with http:// or https:// and a host, such as \
             https://example.org/hook, got {:?}; correct it",
            file.display(),
            format!("{head}{rest}")
        );
    }
    insert(sections, name, field, value, file, &["secret_file"])
}

/// All channels, by name. The key of push messages lies in `key_file`.
pub fn all(
    sections: &Sections,
    key_file: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<ChannelConfig>> {
    sections.iter().map(|(name, fields)| channel(name, fields, key_file, variable)).collect()
}

type Fields = BTreeMap<String, String>;

fn channel(
    name: &str,
    fields: &Fields,
    key_file: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<ChannelConfig> {
    let text = |field: &str| fields.get(field).cloned().filter(|value| !value.is_empty());
    let needed = |field: &str| text(field).with_context(|| format!("notify.{name}.{field} is missing; set it"));
    let or = |field: &str, usual: &str| text(field).unwrap_or_else(|| usual.to_owned());
    let kind = needed("kind")?;
    let secret = secret(name, fields, variable)?;
    let way = match kind.as_str() {
        "command" => Way::Command(needed("command")?),
        "desktop" => Way::Desktop,
        "webhook" => {
            let template = or("template", "standard");
            let parsed = Template::parse(&template).with_context(|| {
                format!("notify.{name}.template must be standard, slack, discord or teams, got {template:?}")
            })?;
            Way::Webhook { url: needed("url")?, secret, template: parsed }
        }
        "ntfy" => Way::Ntfy { base_url: or("url", "https://ntfy.sh"), topic: needed("topic")?, token: secret },
        "telegram" => {
            let missing = || format!("notify.{name} has no token; set secret_env or secret_file");
            let token = secret.with_context(missing)?;
            Way::Telegram { base_url: or("url", "https://api.telegram.org"), chat: needed("chat")?, token }
        }
        "push" => push(name, fields, key_file)?,
        other => bail!("notify.{name}.kind must be command, desktop, webhook, ntfy, telegram or push, got {other:?}"),
    };
    for (field, kinds) in OF_KINDS {
        if fields.contains_key(*field) && !kinds.contains(&kind.as_str()) {
            bail!("notify.{name}.{field} has no effect on a channel of the kind {kind}; remove it");
        }
    }
    Ok(ChannelConfig { name: name.to_owned(), rules: rules(name, fields, &way)?, way })
}

fn push(name: &str, fields: &Fields, key_file: &Path) -> Result<Way> {
    let contact = fields.get("contact").cloned();
    if let Some(contact) =
        contact.as_ref().filter(|contact| !["mailto:", "https:"].iter().any(|s| contact.starts_with(s)))
    {
        bail!("notify.{name}.contact must begin with mailto: or https:, got {contact:?}");
    }
    let mut exceptions = Vec::new();
    for host in fields.get("allow_hosts").map(String::as_str).unwrap_or_default().split(',') {
        if !host.trim().is_empty() {
            let exception = Exception::parse(host);
            exceptions.push(
                exception.with_context(|| format!("notify.{name}.allow_hosts: {host} is not a host or host:port"))?,
            );
        }
    }
    Ok(Way::Push { key_file: key_file.to_owned(), contact, exceptions })
}

fn rules(name: &str, fields: &Fields, way: &Way) -> Result<NoticeRules> {
    let list = |field: &str| {
        let words = fields.get(field).map(String::as_str).unwrap_or_default().split(',').map(str::trim);
        words.filter(|word| !word.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    let mut events = Vec::new();
    for word in list("events") {
        let event = NoticeEvent::parse(&word);
        events.push(event.with_context(|| {
            format!("notify.{name}.events must be of done, failed, asks, budget and quota, got {word:?}")
        })?);
    }
    if events.is_empty() {
        events = NoticeEvent::ALL.to_vec();
    }
    // What stays on this machine carries everything; what passes through others carries the title.
    let is_local = matches!(way, Way::Command(_) | Way::Desktop);
    let usual = if is_local { NoticeContent::Full } else { NoticeContent::Title };
    let content = match fields.get("content") {
        None => usual,
        Some(word) => NoticeContent::parse(word)
            .with_context(|| format!("notify.{name}.content must be none, title or full, got {word:?}"))?,
    };
    let seconds = fields.get("min_seconds").map(|value| value.parse::<u64>()).transpose();
    let min_seconds = seconds.with_context(|| format!("notify.{name}.min_seconds must be a whole number"))?;
    let include_read = match fields.get("read").map(String::as_str) {
        None | Some("off") => false,
        Some("on") => true,
        Some(other) => bail!("notify.{name}.read must be on or off, got {other:?}"),
    };
    Ok(NoticeRules {
        owner: fields.get("user").map_or_else(Principal::local_user, |user| Principal::user(user)),
        events,
        agents: list("agents"),
        projects: list("projects"),
        min_seconds: min_seconds.unwrap_or(0),
        include_read,
        content,
    })
}

fn secret(name: &str, fields: &Fields, variable: &dyn Fn(&str) -> Option<String>) -> Result<Option<String>> {
    let secret = match (fields.get("secret_env"), fields.get("secret_file")) {
        (Some(_), Some(_)) => bail!("notify.{name} has secret_env and secret_file; set one of them"),
        (Some(from), None) => variable(from).with_context(|| {
            format!(
                "notify.{name}: the environment variable {from} is not set for this process; set it before Matsu is \
                     started, or write the secret into a file and name that with secret_file"
            )
        })?,
        (None, Some(file)) => {
            std::fs::read_to_string(file).with_context(|| format!("notify.{name}.secret_file: cannot read {file}"))?
        }
        (None, None) => return Ok(None),
    };
    let secret = secret.trim().to_owned();
    matsu_core::redaction::remember("notify", &secret);
    Ok(Some(secret))
}
