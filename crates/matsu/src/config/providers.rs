//! Providers in the configuration: one section `providers.NAME` each. Three are there without any, as soon as their
//! key is in the environment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use matsu_adapters::providers::{KeySource, ProviderConfig, Secret, WIRES, scripted};
use matsu_core::ports::provider::Price;

/// A field of a section, and its meaning.
pub struct Field {
    pub name: &'static str,
    pub meaning: &'static str,
}

pub const FIELDS: &[Field] = &[
    Field {
        name: "wire",
        meaning: "the wire format: openai (responses), openai_chat, anthropic, gemini, ollama, scripted",
    },
    Field { name: "model", meaning: "the vendor's name of the model; it is sent unchanged" },
    Field { name: "base_url", meaning: "the address of the server; by default the vendor's address" },
    Field { name: "key_env", meaning: "the environment variable that holds the key" },
    Field {
        name: "key_file",
        meaning: "a file that holds the key and nothing else; only you should be able to read it",
    },
    Field {
        name: "context_tokens",
        meaning: "tokens of the model's context; older turns that do not fit are left out",
    },
    Field { name: "output_tokens", meaning: "tokens that one answer may have at most" },
    Field {
        name: "images",
        meaning: "true or false: whether images are sent to the model; by default Matsu decides by the model's name",
    },
    Field { name: "effort", meaning: "the reasoning effort, a word that the vendor defines" },
    Field { name: "input_price", meaning: "price of a million tokens of input, for /cost and budgets" },
    Field { name: "output_price", meaning: "price of a million tokens of output" },
    Field { name: "timeout", meaning: "seconds without output after which an answer is ended" },
    Field { name: "script", meaning: "the file with the replies of a scripted provider" },
];

/// Name, wire, model and the variable of the key. Widely known, and so there from the start.
const BUILT_IN: &[(&str, &str, &str, &str)] = &[
    ("gemini", "gemini", "gemini-2.5-pro", "GEMINI_API_KEY"),
    ("chatgpt", "openai", "gpt-5", "OPENAI_API_KEY"),
    ("claude", "anthropic", "claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
];

/// Sections by name, their fields as text.
pub type Sections = BTreeMap<String, BTreeMap<String, String>>;

/// Takes `NAME.FIELD` of the file into its section.
pub fn take(sections: &mut Sections, dotted: &str, value: String, file: &Path) -> Result<()> {
    let Some((name, field)) = dotted.rsplit_once('.') else {
        bail!("{}: providers.{dotted} must be a section, [providers.{dotted}]", file.display());
    };
    let legal = |character: char| character.is_ascii_alphanumeric() || "_-".contains(character);
    if name.is_empty() || name == "all" || !name.chars().all(legal) {
        bail!(
            "{}: {name:?} cannot be the name of a provider; use letters, digits, _ and -, and not the name all",
            file.display()
        );
    }
    if !FIELDS.iter().any(|known| known.name == field) {
        let near = FIELDS.iter().map(|known| (strsim::jaro_winkler(field, known.name), known.name));
        let best = near.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(score, _)| *score > 0.75);
        let meant = best.map_or_else(String::new, |(_, name)| format!("; did you mean {name}?"));
        bail!("{}: a provider has no field {field}{meant}", file.display());
    }
    insert(sections, name, field, value, file, &["key_file", "script"])
}

/// Stores a field. A relative path means the folder of the file that names it.
pub fn insert(
    sections: &mut Sections,
    name: &str,
    field: &str,
    mut value: String,
    file: &Path,
    paths: &[&str],
) -> Result<()> {
    if paths.contains(&field) {
        value = std::path::absolute(file.parent().unwrap_or(Path::new("")).join(&value))?.display().to_string();
    }
    sections.entry(name.to_owned()).or_default().insert(field.to_owned(), value);
    Ok(())
}

/// All providers, in the order in which they answer `@all`: the built-in ones first, then by name.
pub fn all(sections: &Sections, variable: &dyn Fn(&str) -> Option<String>) -> Result<Vec<ProviderConfig>> {
    let empty = BTreeMap::new();
    let mut providers = Vec::new();
    for (name, wire, model, key) in BUILT_IN {
        let fields = sections.get(*name);
        if fields.is_none() && variable(key).is_none_or(|key| key.is_empty()) {
            continue;
        }
        let standard = ProviderConfig::new(*name, *wire, *model);
        providers.push(provider(standard, fields.unwrap_or(&empty), variable)?);
    }
    for (name, fields) in sections.iter().filter(|(name, _)| BUILT_IN.iter().all(|known| known.0 != name.as_str())) {
        let wire = fields.get("wire").with_context(|| {
            format!("providers.{name}.wire is missing; set its wire format, for instance openai_chat")
        })?;
        let model = fields.get("model").map_or("", String::as_str);
        if model.is_empty() && wire != scripted::WIRE {
            bail!("providers.{name}.model is missing; set the vendor's name of the model");
        }
        providers.push(provider(ProviderConfig::new(name, wire, model), fields, variable)?);
    }
    Ok(providers)
}

fn provider(
    standard: ProviderConfig,
    fields: &BTreeMap<String, String>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<ProviderConfig> {
    let mut config = standard;
    let name = config.name.clone();
    let text = |field: &str| fields.get(field).cloned();
    let number = |field: &str| -> Result<Option<u64>> {
        let parsed = fields.get(field).map(|value| value.parse::<u64>());
        parsed.transpose().with_context(|| format!("providers.{name}.{field} must be a whole number"))
    };
    if let Some(wire) = text("wire") {
        let known: Vec<&str> = WIRES.iter().map(|wire| wire.name()).chain([scripted::WIRE]).collect();
        if !known.contains(&wire.as_str()) {
            bail!("providers.{name}.wire must be one of {}, got {wire:?}", known.join(", "));
        }
        config.wire = wire;
    }
    if let Some(model) = text("model") {
        config.model = model;
    }
    config.base_url = text("base_url");
    config.effort = text("effort");
    config.script = text("script").map(PathBuf::from);
    config.images = text("images").map(|value| flag(&name, &value)).transpose()?;
    config.context_tokens = number("context_tokens")?;
    config.output_tokens = number("output_tokens")?.map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX));
    if let Some(seconds) = number("timeout")? {
        config.idle_max = Duration::from_secs(seconds);
        config.headers_max = Duration::from_secs(seconds);
    }
    config.price = price(&name, fields)?;
    (config.key, config.key_source) = key(&config, fields, variable)?;
    Ok(config)
}

fn flag(name: &str, value: &str) -> Result<bool> {
    match value {
        "on" | "true" => Ok(true),
        "off" | "false" => Ok(false),
        _ => bail!("providers.{name}.images must be true or false, got {value:?}"),
    }
}

fn price(name: &str, fields: &BTreeMap<String, String>) -> Result<Option<Price>> {
    let micros = |field: &str| -> Result<Option<u64>> {
        let Some(value) = fields.get(field) else { return Ok(None) };
        let price: f64 = value
            .parse()
            .ok()
            .filter(|price| (0.0..1e9).contains(price))
            .with_context(|| format!("providers.{name}.{field} must be an amount of money, got {value:?}"))?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded above, and not negative")]
        Ok(Some((price * 1_000_000.0).round() as u64))
    };
    Ok(match (micros("input_price")?, micros("output_price")?) {
        (None, None) => None,
        (input, output) => Some(Price { input_micros: input.unwrap_or(0), output_micros: output.unwrap_or(0) }),
    })
}

fn key(
    config: &ProviderConfig,
    fields: &BTreeMap<String, String>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<(Option<Secret>, KeySource)> {
    if let Some(path) = fields.get("key_file").map(PathBuf::from) {
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("providers.{}.key_file: cannot read {}", config.name, path.display()))?;
        return Ok((Some(Secret::new(&text)), KeySource::File(path)));
    }
    let own = BUILT_IN.iter().find(|known| known.1 == config.wire && config.base_url.is_none()).map(|known| known.3);
    let Some(name) = fields.get("key_env").map(String::as_str).or(own) else {
        return Ok((None, KeySource::Nowhere));
    };
    let key = variable(name).filter(|key| !key.trim().is_empty());
    Ok((key.map(|key| Secret::new(&key)), KeySource::Variable(name.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sections(fields: &[(&str, &str)]) -> Result<Sections> {
        let mut sections = Sections::new();
        for (dotted, value) in fields {
            take(&mut sections, dotted, (*value).to_owned(), Path::new("/etc/matsu/config.toml"))?;
        }
        Ok(sections)
    }

    fn names(fields: &[(&str, &str)], keys: &[&str]) -> Vec<String> {
        let variable = |name: &str| keys.contains(&name).then(|| "sk-123456789".to_owned());
        let providers = all(&sections(fields).unwrap(), &variable).unwrap();
        providers.iter().map(|provider| provider.name.clone()).collect()
    }

    #[test]
    fn keys_alone_bring_the_three_known_ones() {
        assert_eq!(names(&[], &[]), Vec::<String>::new());
        assert_eq!(names(&[], &["ANTHROPIC_API_KEY", "GEMINI_API_KEY"]), ["gemini", "claude"]);
        let local =
            [("local.wire", "openai_chat"), ("local.model", "qwen3"), ("local.base_url", "http://127.0.0.1:1/v1")];
        assert_eq!(names(&local, &["OPENAI_API_KEY"]), ["chatgpt", "local"]);
    }

    #[test]
    fn an_endpoint_of_ones_own_never_gets_the_vendors_key() {
        let fields = [("x.wire", "openai_chat"), ("x.model", "m"), ("x.base_url", "http://127.0.0.1:1/v1")];
        let providers = all(&sections(&fields).unwrap(), &|_| Some("sk-123456789".to_owned())).unwrap();
        let own = providers.iter().find(|provider| provider.name == "x").unwrap();
        assert_eq!((own.key.is_none(), &own.key_source), (true, &KeySource::Nowhere));
    }

    #[test]
    fn prices_are_money_and_paths_lie_beside_the_file() {
        let fields =
            [("m.wire", "scripted"), ("m.script", "s.json"), ("m.input_price", "2.5"), ("m.output_price", "10")];
        let providers = all(&sections(&fields).unwrap(), &|_| None).unwrap();
        assert_eq!(providers[0].price, Some(Price { input_micros: 2_500_000, output_micros: 10_000_000 }));
        assert_eq!(providers[0].script.as_deref(), Some(Path::new("/etc/matsu/s.json")));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (fields, said) in [
            (vec![("x.modle", "m")], "did you mean model?"),
            (vec![("all.wire", "ollama")], "cannot be the name"),
            (vec![("x", "m")], "must be a section"),
            (vec![("x.model", "m")], "providers.x.wire is missing"),
            (vec![("x.wire", "ollama")], "providers.x.model is missing"),
            (vec![("x.wire", "smoke"), ("x.model", "m")], "must be one of"),
            (vec![("x.wire", "ollama"), ("x.model", "m"), ("x.context_tokens", "many")], "whole number"),
            (vec![("x.wire", "ollama"), ("x.model", "m"), ("x.images", "some")], "x.images must be true or false"),
        ] {
            let error = sections(&fields).and_then(|sections| all(&sections, &|_| None)).unwrap_err();
            assert!(format!("{error:#}").contains(said), "{said}: {error:#}");
        }
    }
}
