//! Settings in layers, each knowing where its value came from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};

use super::key::Key;
use super::keys::KEYS;
use super::wrong_flag::WrongFlag;
use crate::paths::Paths;

/// Who said it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Default,
    File(PathBuf),
    Environment(String),
    Flag,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Flag => f.write_str("flag"),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Setting {
    pub value: String,
    pub source: Source,
}

/// All settings; every key of the table has one.
#[derive(Clone, Debug)]
pub struct Layers {
    settings: BTreeMap<&'static str, Setting>,
    /// Sections of the file, by provider.
    pub providers: super::providers::Sections,
    /// Sections of the file, by channel of notices.
    pub notify: super::providers::Sections,
    /// By model or agent.
    pub prices: BTreeMap<String, matsu_core::usage::Price>,
}

impl Layers {
    pub fn defaults(paths: &Paths) -> Self {
        let settings =
            KEYS.iter().map(|key| (key.name, Setting { value: (key.default)(paths), source: Source::Default }));
        Self {
            settings: settings.collect(),
            providers: BTreeMap::new(),
            notify: BTreeMap::new(),
            prices: BTreeMap::new(),
        }
    }

    /// Unknown keys are errors: a setting that is not read is worse than none.
    pub fn read_file(&mut self, file: &Path) -> Result<()> {
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let table = text.parse::<toml::Table>();
        // Its text ends with an empty line.
        let table =
            table.map_err(|error| anyhow!("{} is not valid TOML: {}", file.display(), error.to_string().trim_end()))?;
        let mut found = Vec::new();
        flatten("", &toml::Value::Table(table), &mut found);
        for (name, value) in found {
            if let Some(dotted) = name.strip_prefix("providers.") {
                let value = value.with_context(|| format!("{}: {name} must be a single value", file.display()))?;
                super::providers::take(&mut self.providers, dotted, value, file)?;
                continue;
            }
            if let Some(dotted) = name.strip_prefix("prices.") {
                let value = value.with_context(|| format!("{}: {name} must be a single value", file.display()))?;
                super::prices::take(&mut self.prices, dotted, &value, file)?;
                continue;
            }
            if let Some(dotted) = name.strip_prefix("notify.") {
                let value = value.with_context(|| format!("{}: {name} must be a single value", file.display()))?;
                super::notify::take(&mut self.notify, dotted, value, file)?;
                continue;
            }
            let Some(key) = KEYS.iter().find(|key| key.name == name) else {
                bail!("{}: there is no setting {name}{}", file.display(), suggestion(&name));
            };
            let value = value.with_context(|| format!("{}: {name} must be a single value", file.display()))?;
            self.set(key, value, Source::File(file.to_owned()))?;
        }
        Ok(())
    }

    pub fn read_environment(&mut self, variable: impl Fn(&str) -> Option<String>) -> Result<()> {
        for key in KEYS {
            let name = key.variable();
            if let Some(value) = variable(&name) {
                self.set(key, value, Source::Environment(name))?;
            }
        }
        Ok(())
    }

    /// Each flag with the setting that it stands for.
    pub fn read_flags(&mut self, flags: &[(&str, &str, Option<String>)]) -> Result<(), WrongFlag> {
        for (flag, name, value) in flags {
            if let (Some(key), Some(value)) = (KEYS.iter().find(|key| key.name == *name), value) {
                if let Some(complaint) = key.complaint(value) {
                    return Err(WrongFlag(format!("{flag} {complaint}")));
                }
                self.settings.insert(key.name, Setting { value: value.clone(), source: Source::Flag });
            }
        }
        Ok(())
    }

    fn set(&mut self, key: &Key, value: String, source: Source) -> Result<()> {
        if let Some(complaint) = key.complaint(&value) {
            bail!("{source}: {} {complaint}", key.name);
        }
        self.settings.insert(key.name, Setting { value, source });
        Ok(())
    }

    /// A relative path means the folder of the file that names it, else the current one; said once, here, so that
    /// every process that is handed the address means the same file.
    pub fn make_store_absolute(&mut self) -> Result<()> {
        let Some(setting) = self.settings.get_mut("store.url") else { return Ok(()) };
        let Some(path) = setting.value.strip_prefix("sqlite:").filter(|path| !path.is_empty()) else { return Ok(()) };
        let path = match &setting.source {
            Source::File(file) => file.parent().unwrap_or(Path::new("")).join(path),
            Source::Default | Source::Environment(_) | Source::Flag => PathBuf::from(path),
        };
        setting.value = format!("sqlite:{}", std::path::absolute(path)?.display());
        Ok(())
    }

    /// Goes by another reading of the same places, as far as a running daemon can.
    pub fn take_over(&mut self, newer: Self) {
        for key in KEYS.iter().filter(|key| key.is_followed()) {
            if let Some(setting) = newer.settings.get(key.name) {
                self.settings.insert(key.name, setting.clone());
            }
        }
        (self.providers, self.notify, self.prices) = (newer.providers, newer.notify, newer.prices);
    }

    /// Whether research must be put together anew.
    pub fn differ_for_research(&self, other: &Self) -> bool {
        let is_meant = |key: &&Key| key.name.starts_with("research.") || key.name == "chat.agents";
        self.providers != other.providers
            || KEYS.iter().filter(is_meant).any(|key| self.text(key.name) != other.text(key.name))
    }

    pub fn text(&self, name: &str) -> &str {
        debug_assert!(self.settings.contains_key(name), "{name} is not in the table");
        self.settings.get(name).map_or("", |setting| &setting.value)
    }

    /// Who said it.
    pub fn source(&self, name: &str) -> &Source {
        self.settings.get(name).map_or(&Source::Default, |setting| &setting.source)
    }

    /// Numbers were checked when they came in.
    pub fn number(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap_or_default()
    }

    /// In the order of the table.
    pub fn all(&self) -> impl Iterator<Item = (&'static Key, &Setting)> {
        KEYS.iter().filter_map(|key| Some((key, self.settings.get(key.name)?)))
    }
}

/// Dotted names to values; `None` for what is not a single value.
fn flatten(prefix: &str, value: &toml::Value, found: &mut Vec<(String, Option<String>)>) {
    let text = match value {
        toml::Value::Table(table) => {
            for (name, value) in table {
                let name = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                flatten(&name, value, found);
            }
            return;
        }
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Boolean(yes) => Some((if *yes { "on" } else { "off" }).to_owned()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Datetime(_) | toml::Value::Array(_) => None,
    };
    found.push((prefix.to_owned(), text));
}

fn suggestion(name: &str) -> String {
    let near = KEYS.iter().map(|key| (strsim::jaro_winkler(name, key.name), key.name));
    let best = near.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(score, _)| *score > 0.75);
    best.map_or_else(|| "; see `matsu config reference`".to_owned(), |(_, name)| format!("; did you mean {name}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layers() -> Layers {
        Layers::defaults(&Paths { data_dir: PathBuf::from("/d"), runtime_dir: None })
    }

    fn from_file(text: &str) -> Result<Layers> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("config.toml");
        std::fs::write(&file, text)?;
        let mut layers = layers();
        layers.read_file(&file)?;
        Ok(layers)
    }

    #[test]
    fn every_default_passes_its_own_check() {
        for (key, setting) in layers().all() {
            assert_eq!(key.complaint(&setting.value), None, "{}", key.name);
        }
    }

    #[test]
    fn flag_over_environment_over_file() {
        let mut layers = from_file("[server]\nport = 1000\n[slots]\ncpu = 9\n").unwrap();
        assert_eq!(layers.number("server.port"), 1000);
        layers.read_environment(|name| (name == "MATSU_SERVER_PORT").then(|| "2000".to_owned())).unwrap();
        assert_eq!(layers.number("server.port"), 2000);
        layers.read_flags(&[("--port", "server.port", Some("3000".to_owned()))]).unwrap();
        assert_eq!((layers.number("server.port"), layers.number("slots.cpu")), (3000, 9));
    }

    #[test]
    fn a_relative_store_lies_beside_the_file_that_names_it() {
        let mut layers = from_file("[store]\nurl = \"sqlite:x.db\"\n").unwrap();
        layers.make_store_absolute().unwrap();
        let url = layers.text("store.url");
        assert!(url.starts_with("sqlite:/") && url.ends_with("/x.db"), "{url}");
        layers.read_flags(&[("--store", "store.url", Some("sqlite:y.db".to_owned()))]).unwrap();
        layers.make_store_absolute().unwrap();
        let here = std::path::absolute("y.db").unwrap();
        assert_eq!(layers.text("store.url"), format!("sqlite:{}", here.display()));
    }

    #[test]
    fn a_running_daemon_keeps_what_it_was_started_with_and_takes_the_rest() {
        let mut layers = from_file("[server]\nport = 1000\n[wait]\nhold_max = 1\n").unwrap();
        let newer = from_file("[server]\nport = 2000\n[wait]\nhold_max = 2\n[prices.m]\ninput = 1\n").unwrap();
        layers.take_over(newer.clone());
        assert_eq!((layers.number("server.port"), layers.number("wait.hold_max")), (1000, 2));
        assert_eq!(layers.prices.len(), 1);
        assert!(!layers.differ_for_research(&newer));
        let searching = from_file("[research]\nstep_ms = 7\n").unwrap();
        assert!(layers.differ_for_research(&searching));
    }

    #[test]
    fn an_unknown_key_names_the_one_that_was_meant() {
        let error = from_file("[server]\nprot = 1\n").unwrap_err().to_string();
        assert!(error.contains("did you mean server.port?"), "{error}");
    }

    #[test]
    fn a_bad_value_names_key_and_place() {
        let error = from_file("[server]\nport = 70000\n").unwrap_err().to_string();
        assert!(error.contains("server.port must be a whole number from 0 to 65535"), "{error}");
        assert!(error.contains("config.toml"), "{error}");
    }
}
