//! docs/reference/configuration.md and a sample file, written from the table of settings.

use std::fmt::Write;

use crate::config::key::{Key, Kind};
use crate::config::keys::KEYS;
use crate::config::providers::FIELDS;
use crate::paths::Paths;

/// The page `docs/reference/configuration.md` is this output; a test compares them.
pub fn print() {
    say!("# Settings\n");
    say!("Written by `matsu config reference`. A flag overrides the environment, the environment overrides the file");
    say!("(`$XDG_CONFIG_HOME/matsu/config.toml`), and the file overrides the default.\n");
    say!(
        "A running daemon reads the file and the definitions of agents again within seconds after they change. Settings"
    );
    say!(
        "marked ↻ are used after its next start; `matsu config show` lists the changed settings that are not used yet.\n"
    );
    say!(
        "The data directory is no setting, because the file's own place does not depend on it: `--data-dir` overrides"
    );
    say!(
        "`MATSU_DATA_DIR`, and `MATSU_DATA_DIR` overrides `$XDG_DATA_HOME/matsu` (`~/.local/share/matsu`). `matsu connect`"
    );
    say!(
        "and `matsu service install` write the data directory and the store (`MATSU_STORE_URL` or `--store`) into the"
    );
    say!("client's or the service's file, because these programs are started without your shell's environment.\n");
    say!("| key | environment | value | default | meaning |");
    say!("|---|---|---|---|---|");
    for key in KEYS {
        let kind = match key.kind {
            Kind::Text | Kind::MaybeText => "text".to_owned(),
            Kind::Number { min, max } => format!("{min} to {max}"),
            Kind::Word(words) => words.join(" or "),
            Kind::Origin => "none or address".to_owned(),
        };
        let mark = if key.is_followed() { "" } else { " ↻" };
        say!("| `{}`{mark} | `{}` | {kind} | {} | {} |", key.name, key.variable(), shown_default(key), key.meaning);
    }
    say!("\n## Models\n");
    say!(
        "Each model has a section `[providers.NAME]` in the file. `gemini`, `chatgpt` and `claude` need no section if their"
    );
    say!("key is in the environment. The file never contains a key.\n");
    say!("| field | meaning |");
    say!("|---|---|");
    for field in FIELDS {
        say!("| `{}` | {} |", field.name, field.meaning);
    }
    say!("\n## Notices\n");
    say!("Each channel has a section `[notify.NAME]` in the file. The file never contains a secret.\n");
    say!("| field | meaning |");
    say!("|---|---|");
    for field in crate::config::notify::FIELDS {
        say!("| `{}` | {} |", field.name, field.meaning);
    }
    say!("\n## Prices\n");
    say!(
        "Each model, or each agent whose model is unknown, can have a section `[prices.\"NAME\"]` in the file. `matsu usage`"
    );
    say!("uses these prices for runs whose program does not report its cost.\n");
    say!("| field | meaning |");
    say!("|---|---|");
    for field in crate::config::prices::FIELDS {
        say!("| `{}` | {} |", field.name, field.meaning);
    }
    say!("\n## A sample file\n");
    say!(
        "`matsu config sample` prints it: every setting at its default, as comments. To change a setting, remove its `#`.\n"
    );
    say!("```toml\n{}\n```", sample().trim_end());
}

/// The folders of a user with no variables set.
fn usual() -> Paths {
    Paths { data_dir: "/home/you/.local/share/matsu".into(), runtime_dir: None }
}

/// The same on every machine.
fn shown_default(key: &Key) -> String {
    match (key.name, (key.default)(&usual())) {
        ("slots.cpu", _) => "the number of cores".to_owned(),
        // Long, and the same in the sample below.
        ("agents.read", _) => "toolchains, see the sample".to_owned(),
        (_, empty) if empty.is_empty() => "empty".to_owned(),
        (_, value) => format!("`{value}`"),
    }
}

/// Every setting, by section, as comments. Those without a section must stand before the first one.
pub fn sample() -> String {
    let section = |key: &Key| key.name.split_once('.').map_or("", |(section, _)| section);
    let mut sections: Vec<&str> = vec![""];
    for key in KEYS {
        if !sections.contains(&section(key)) {
            sections.push(section(key));
        }
    }
    let mut text = String::from("# /home/you/.config/matsu/config.toml\n");
    for of in sections {
        if !of.is_empty() {
            let _ = write!(text, "\n[{of}]\n");
        }
        KEYS.iter().filter(|key| section(key) == of).for_each(|key| add_setting(&mut text, key));
    }
    text
}

fn add_setting(text: &mut String, key: &Key) {
    let name = key.name.rsplit_once('.').map_or(key.name, |(_, name)| name);
    let value = match key.name {
        "slots.cpu" => "4".to_owned(),
        _ => (key.default)(&usual()),
    };
    let value = match key.kind {
        Kind::Number { .. } => value,
        Kind::Text | Kind::MaybeText | Kind::Word(_) | Kind::Origin => format!("{value:?}"),
    };
    let _ = write!(text, "# {}\n# {name} = {value}\n", key.meaning);
}
