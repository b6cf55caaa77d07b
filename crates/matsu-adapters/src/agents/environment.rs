//! The environment of a run: an allow list plus the definition's own values. Built from nothing, never copied.

use std::collections::BTreeMap;

use super::definition::Definition;

/// What every program needs to find itself, its user and the network.
const ALWAYS: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
];

/// Names of files that every run reads: without them it trusts no proxy that opens its connections.
pub const CERTIFICATES: &[&str] = &["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"];

/// Names that make a program load or run something else. No caller may set them, in any letter case.
const LOADERS: &[&str] = &[
    "BASH_ENV",
    "ENV",
    "GCONV_PATH",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PERL5LIB",
    "PERL5OPT",
    "PROMPT_COMMAND",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYLIB",
    "RUBYOPT",
    "ZDOTDIR",
];

/// Names that only the program's user decides about.
const KEPT: &[&str] = &["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR"];

fn is_loader(name: &str) -> bool {
    let upper = name.to_uppercase();
    upper.starts_with("LD_") || upper.starts_with("DYLD_") || LOADERS.contains(&upper.as_str())
}

/// Where a program sends the user's key and text: only the configuration says.
fn is_address(name: &str) -> bool {
    let upper = name.to_uppercase();
    upper.contains("BASE_URL") || upper.ends_with("_ENDPOINT") || upper.ends_with("_HOST")
}

/// What of Matsu's own environment a check gets: no key, and nothing that a definition names.
pub fn plain(own: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let passes = |name: &str| (ALWAYS.contains(&name) || name.starts_with("LC_")) && !is_loader(name);
    own.iter().filter(|(name, _)| passes(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// What of Matsu's own environment a run gets.
pub fn inherited(definition: &Definition, own: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let keys = definition.login.iter().flat_map(|login| &login.keys);
    let named: Vec<&str> = definition.inherit.iter().chain(keys).map(String::as_str).collect();
    let passes = |name: &str| {
        let is_wanted = ALWAYS.contains(&name) || name.starts_with("LC_") || named.contains(&name);
        is_wanted && !is_loader(name) && !is_address(name)
    };
    own.iter().filter(|(name, _)| passes(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Whether a definition may set this name.
pub fn may_define(name: &str) -> bool {
    !is_loader(name)
}

/// Why a caller may not set this name; `None` if it may.
pub fn refusal(definition: &Definition, name: &str) -> Option<String> {
    let kept = KEPT.contains(&name.to_uppercase().as_str());
    if is_loader(name) || is_address(name) || kept || !definition.allow_env.iter().any(|allowed| allowed == name) {
        let allowed = definition.allow_env.join(", ");
        let allowed = if allowed.is_empty() { "none".to_owned() } else { allowed };
        return Some(format!("env may not set {name} for {}; allowed are: {allowed}", definition.name));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(more: &str) -> Definition {
        let text = format!("name = \"x\"\ncommand = \"x\"\nprompt = \"stdin\"\noutput = \"text\"\n{more}");
        Definition::parse(&text, |_| None).unwrap()
    }

    #[test]
    fn nothing_is_inherited_but_what_is_named() {
        let own = [
            ("PATH", "/bin"),
            ("SECRET", "s"),
            ("X_KEY", "k"),
            ("LD_PRELOAD", "evil"),
            ("X_BASE_URL", "http://x"),
            ("LC_ALL", "C"),
            ("ld_preload", "evil"),
        ];
        let own: BTreeMap<String, String> = own.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let wishes =
            definition("inherit = [\"LD_PRELOAD\", \"ld_preload\", \"X_BASE_URL\"]\n[login]\nkeys = [\"X_KEY\"]\n");
        assert_eq!(inherited(&wishes, &own).into_keys().collect::<Vec<_>>(), ["LC_ALL", "PATH", "X_KEY"]);
    }

    #[test]
    fn a_caller_sets_what_is_allowed_and_never_a_loader() {
        let all =
            "allow_env = [\"GOOD\", \"LD_PRELOAD\", \"Ld_Preload\", \"PATH\", \"X_BASE_URL\", \"node_options\"]\n";
        let all = definition(all);
        assert_eq!(refusal(&all, "GOOD"), None);
        for name in ["LD_PRELOAD", "Ld_Preload", "PATH", "X_BASE_URL", "node_options", "OTHER"] {
            assert!(refusal(&all, name).is_some_and(|why| why.contains(name)), "{name}");
        }
    }
}
