//! `matsu config show` and `matsu config reference`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use serde_json::json;

use super::{Context, print_json, print_table};
use crate::config::keys::{KEYS, Kind};
use crate::config::providers::FIELDS;
use crate::config::without_password;

#[derive(Subcommand)]
pub enum ConfigCommand {
    /// Every setting, its value and where it came from
    Show,
    /// Every setting with its meaning, as Markdown
    Reference,
}

pub fn run(cx: &Context, what: &ConfigCommand) -> Result<ExitCode> {
    match what {
        ConfigCommand::Show => show(cx),
        ConfigCommand::Reference => reference(),
    }
    Ok(ExitCode::SUCCESS)
}

fn show(cx: &Context) {
    let rows: Vec<Vec<String>> = cx
        .config
        .layers
        .all()
        .map(|(key, setting)| vec![key.name.to_owned(), without_password(&setting.value), setting.source.to_string()])
        .collect();
    if cx.json {
        let items = rows.iter().map(|row| json!({ "key": row[0], "value": row[1], "from": row[2] }));
        print_json(&items.collect());
        return;
    }
    print_table(&["KEY", "VALUE", "FROM"], &rows);
}

/// The page `docs/reference/configuration.md` is this output; a test compares them.
fn reference() {
    say!("# Settings\n");
    say!("Made by `matsu config reference`. A flag wins over the environment, the environment over the file");
    say!("(`$XDG_CONFIG_HOME/matsu/config.toml`), the file over the default.\n");
    say!("| key | environment | value | meaning |");
    say!("|---|---|---|---|");
    for key in KEYS {
        let kind = match key.kind {
            Kind::Text | Kind::MaybeText => "text".to_owned(),
            Kind::Number { min, max } => format!("{min} to {max}"),
            Kind::Word(words) => words.join(" or "),
            Kind::Origin => "none or address".to_owned(),
        };
        say!("| `{}` | `{}` | {kind} | {} |", key.name, key.variable(), key.meaning);
    }
    say!("\n## Models\n");
    say!(
        "One section `[providers.NAME]` of the file for each. `gemini`, `chatgpt` and `claude` need none once their key is"
    );
    say!("in the environment. A key is never written here.\n");
    say!("| field | meaning |");
    say!("|---|---|");
    for field in FIELDS {
        say!("| `{}` | {} |", field.name, field.meaning);
    }
    say!("\n## Notices\n");
    say!("One section `[notify.NAME]` of the file for each channel. A secret is never written here.\n");
    say!("| field | meaning |");
    say!("|---|---|");
    for field in crate::config::notify::FIELDS {
        say!("| `{}` | {} |", field.name, field.meaning);
    }
    say!("\n## Prices\n");
    say!(
        "One section `[prices.\"NAME\"]` of the file for each model, or for each agent whose model is not known. They are used by"
    );
    say!("`matsu usage` for runs whose program does not say what it cost.\n");
    say!("| field | meaning |");
    say!("|---|---|");
    for field in crate::config::prices::FIELDS {
        say!("| `{}` | {} |", field.name, field.meaning);
    }
}
