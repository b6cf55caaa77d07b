//! What begins with a slash. Adding a command: an arm here, a line in the help.

use std::path::Path;

use anyhow::{Context, Result, bail};
use matsu_core::history::Role;
use matsu_core::ports::store::ListTranscripts;
use matsu_core::principal::Principal;
use matsu_core::transcript::ChatPlace;
use matsu_runtime::models::agentic_loop::Policy;
use matsu_runtime::models::agentic_loop::spending::in_money;
use matsu_runtime::models::chat::export;

use super::clipboard;
use super::opening;
use super::session::TerminalChat;

/// Whether the chat goes on.
pub enum Next {
    Go,
    Leave,
}

const HELP: &str = "\
@NAME …              ask that model; several names or @all are possible; a line without a name is a note
/model [NAME|none]   which model answers a line without a name
/system [TEXT|clear] the system prompt
/attach FILE|clear   an image that goes with your next line
/history list        your named chats       /history new   a new chat
/history save NAME   keep a copy of the chat in its current state; asks first if the name is taken
/history load NAME   continue a named chat
/export md|json FILE the chat as a file     /copy [N]      the N-th newest answer to the clipboard
/tools [N]           what models can call; or the N-th call in full
/approve [TOOL allow|ask|deny|always|forget]   always and forget apply to this project, in later chats too
/cost                what this chat has used since it was opened here
/exit                leave; everything is kept
Ctrl-C stops an answer and keeps the part that has arrived.";

pub async fn run(session: &mut TerminalChat, line: &str) -> Result<Next> {
    let (command, rest) = line.split_once(char::is_whitespace).map_or((line, ""), |(word, rest)| (word, rest.trim()));
    match command {
        "/help" => show!("{HELP}"),
        "/exit" | "/quit" => return Ok(Next::Leave),
        "/model" => model(session, rest)?,
        "/system" => system(session, rest).await?,
        "/attach" => attach(session, rest)?,
        "/history" => history(session, rest).await?,
        "/export" => export_to(session, rest).await?,
        "/copy" => copy(session, rest).await?,
        "/tools" => tools(session, rest).await?,
        "/approve" => approve(session, rest)?,
        "/cost" => cost(session),
        other => bail!("there is no {other}; /help lists the commands"),
    }
    Ok(Next::Go)
}

fn model(session: &mut TerminalChat, name: &str) -> Result<()> {
    let roster = &session.held.open_chat.roster;
    match name {
        "" => {
            for known in roster.names() {
                let mark = if roster.default() == Some(known) { "*" } else { " " };
                let made = roster.get(known).map(|model| model.maker());
                show!(
                    "{mark} @{known}  {}",
                    made.map_or_else(String::new, |made| format!("{} ({})", made.model, made.wire))
                );
            }
        }
        "none" => session.held.open_chat.roster = roster.with_default(None),
        name => {
            let name = name.trim_start_matches('@');
            if roster.get(name).is_none() {
                bail!("there is no model {name}; /model lists them");
            }
            session.held.open_chat.roster = roster.with_default(Some(name.to_owned()));
        }
    }
    Ok(())
}

async fn system(session: &mut TerminalChat, text: &str) -> Result<()> {
    match text {
        "" => show!("{}", session.held.open_chat.transcript.system_prompt.as_deref().unwrap_or("(none)")),
        "clear" => session.held.open_chat.set_system_prompt(None).await?,
        text => session.held.open_chat.set_system_prompt(Some(text.to_owned())).await?,
    }
    Ok(())
}

fn attach(session: &mut TerminalChat, path: &str) -> Result<()> {
    match path {
        "" => bail!("use /attach FILE, a PNG, JPEG, GIF or WebP; /attach clear removes what is attached"),
        "clear" => session.attached.clear(),
        path => session.attached.push(super::attach::read(Path::new(path))?),
    }
    show!("({} attached to your next line)", session.attached.len());
    Ok(())
}

async fn history(session: &mut TerminalChat, rest: &str) -> Result<()> {
    let (what, name) = rest.split_once(char::is_whitespace).map_or((rest, ""), |(what, name)| (what, name.trim()));
    match what {
        "list" => {
            for transcript in session.open_chats.store.run(ListTranscripts(Principal::local_user())).await? {
                if let Some(name) = &transcript.name {
                    show!("{name}  ({} entries, {})", transcript.chat.last_seq, transcript.updated_at);
                }
            }
        }
        "save" => save(session, name).await?,
        "load" => {
            let open_chat = opening::load(&session.open_chats, name).await?;
            replace(session, session.locks.hold(open_chat)?).await?;
            show_entries(session).await?;
        }
        "new" => {
            let open_chat = session.open_chats.open(&Principal::local_user(), &[], ChatPlace::Terminal).await?;
            replace(session, session.locks.hold(open_chat)?).await?;
        }
        _ => bail!("use /history list, save NAME, load NAME or new"),
    }
    Ok(())
}

/// Messages of a loaded chat that are shown.
const SHOWN_MAX: usize = 40;

/// The newest messages of the chat.
async fn show_entries(session: &TerminalChat) -> Result<()> {
    let entries = session.held.open_chat.entries().await?;
    let spoken: Vec<_> = entries.iter().filter(|entry| !entry.spoken().trim().is_empty()).collect();
    let left_out = spoken.len().saturating_sub(SHOWN_MAX);
    if left_out > 0 {
        show!("({left_out} older messages; /export writes them all)");
    }
    for entry in spoken.into_iter().skip(left_out) {
        show!("[{}]: {}", entry.model.as_deref().unwrap_or("you"), entry.spoken().trim_end());
    }
    show!("({} entries)", session.held.open_chat.transcript.chat.last_seq);
    Ok(())
}

/// A copy under a name; this chat goes on without one. A name that another chat has is taken from it only if the person
/// agrees.
async fn save(session: &mut TerminalChat, name: &str) -> Result<()> {
    let taken = session
        .open_chats
        .store
        .run(ListTranscripts(Principal::local_user()))
        .await?
        .into_iter()
        .any(|transcript| transcript.name.as_deref() == Some(name));
    if taken
        && !session.input.confirm(&format!("There is already a chat named {name}. Give this name to the copy?")).await
    {
        bail!("not saved; the other chat keeps the name");
    }
    session.held.open_chat.save_as(name, taken).await?;
    show!("(saved as {name})");
    Ok(())
}

/// Another chat takes the place of this one, which is kept.
async fn replace(session: &mut TerminalChat, held: opening::Held) -> Result<()> {
    let mut before = std::mem::replace(&mut session.held, held);
    let id = before.open_chat.id().clone();
    session.host.close_chat(id.as_str()).await;
    before.open_chat.end().await?;
    session.locks.forget(&id);
    session.calls.clear();
    Ok(())
}

async fn export_to(session: &TerminalChat, rest: &str) -> Result<()> {
    let Some((form, file)) = rest.split_once(char::is_whitespace) else {
        bail!("use /export md FILE or /export json FILE")
    };
    let entries = session.held.open_chat.entries().await?;
    let transcript = &session.held.open_chat.transcript;
    let text = match form {
        "md" => export::to_markdown(transcript, &entries),
        "json" => format!("{:#}\n", export::to_json(transcript, &entries)),
        other => bail!("{other} is not a format; use md or json"),
    };
    let path = Path::new(file.trim());
    if path.exists() && !session.input.confirm(&format!("{} exists. Overwrite it?", path.display())).await {
        bail!("not written");
    }
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    show!("(written to {})", path.display());
    Ok(())
}

async fn copy(session: &TerminalChat, rest: &str) -> Result<()> {
    let nth: usize = if rest.is_empty() { 0 } else { rest.parse().context("use /copy N; 0 is the newest answer")? };
    let entries = session.held.open_chat.entries().await?;
    let answers =
        entries.iter().rev().filter(|entry| entry.role == Role::Assistant && !entry.spoken().trim().is_empty());
    let answer = answers.skip(nth).map(matsu_core::history::Entry::spoken).next();
    let answer = answer.context("there are not that many answers")?;
    if session.input.is_terminal {
        show!("{}({} characters copied)", clipboard::sequence(&answer), answer.chars().count());
    } else {
        show!("{answer}");
    }
    Ok(())
}

async fn tools(session: &TerminalChat, rest: &str) -> Result<()> {
    if !rest.is_empty() {
        let nth: usize = rest.trim_start_matches('#').parse().context("use /tools N; N is the number of a call")?;
        let call = nth.checked_sub(1).and_then(|at| session.calls.get(at)).context("there is no such call")?;
        show!("{} {:#}", call.name, call.arguments);
        if let Some((content, is_error)) = &call.result {
            show!("{}{content}", if *is_error { "failed: " } else { "" });
        }
        return Ok(());
    }
    let offered = session.offered().await;
    for tool in &offered.tools {
        show!("{}  {}", tool.name, tool.description.lines().next().unwrap_or_default());
    }
    for note in &offered.notes {
        show!("({note})");
    }
    Ok(())
}

fn approve(session: &TerminalChat, rest: &str) -> Result<()> {
    let Some((tool, word)) = rest.split_once(char::is_whitespace) else {
        for (tool, policy) in session.approver.all() {
            show!("{tool}  {policy:?}");
        }
        let (project, tools) = session.approver.stored();
        for tool in tools {
            show!("{tool}  always in {project}");
        }
        show!("(tools that can destroy something ask first, all others are allowed)");
        return Ok(());
    };
    let policy = match word.trim() {
        "allow" => Policy::Allow,
        "ask" => Policy::Ask,
        "deny" => Policy::Deny,
        word @ ("always" | "forget") => {
            session.approver.remember(tool, word == "always").map_err(anyhow::Error::msg)?;
            if word == "always" { Policy::Allow } else { Policy::Ask }
        }
        other => bail!("{other} is not a policy; use allow, ask, deny, always or forget"),
    };
    session.approver.set(tool, policy);
    Ok(())
}

fn cost(session: &TerminalChat) {
    let spent = session.spent;
    let money = spent.micros.map_or_else(|| "no price is configured".to_owned(), in_money);
    show!("{} tokens in, {} out; {money}", spent.input_tokens, spent.output_tokens);
}
