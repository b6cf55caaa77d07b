//! Which agents there are: those that are built in, and the user's own, which win by name.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use matsu_core::ports::agent::BrokenDefinition;
use toml::Table;

use super::definition::Definition;

/// One line for each file of `agents/`; a test compares them.
const BUILT_IN: &[(&str, &str)] = &[
    ("claude", include_str!("../../../../agents/claude.toml")),
    ("codex", include_str!("../../../../agents/codex.toml")),
    ("gemini", include_str!("../../../../agents/gemini.toml")),
    ("matsu", include_str!("../../../../agents/matsu.toml")),
    ("opencode", include_str!("../../../../agents/opencode.toml")),
    ("qwen", include_str!("../../../../agents/qwen.toml")),
];

/// By name.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    pub definitions: BTreeMap<String, Arc<Definition>>,
    pub broken: Vec<BrokenDefinition>,
}

impl Registry {
    /// Why the file that is named like this agent could not be read.
    pub fn why_broken(&self, name: &str) -> Option<String> {
        let is_its = |file: &str| Path::new(file).file_stem().is_some_and(|stem| stem == name);
        let broken = self.broken.iter().find(|broken| is_its(&broken.file))?;
        Some(format!("{}: {}", broken.file, broken.error))
    }

    /// Reads everything. A broken file is reported by name, and the others load.
    #[must_use]
    pub fn load(folder: Option<&Path>) -> Self {
        let mut registry = Self::default();
        for (name, text) in BUILT_IN {
            registry.add(&format!("{name} (built in)"), text);
        }
        for path in folder.map(files_of).unwrap_or_default() {
            match std::fs::read_to_string(&path) {
                Ok(text) => registry.add(&path.display().to_string(), &text),
                Err(error) => registry.complain(&path.display().to_string(), error.to_string()),
            }
        }
        registry
    }

    /// For runs that have nothing to report: their programs get no address of Matsu.
    pub fn drop_ways_back(&mut self) {
        for definition in self.definitions.values_mut() {
            Arc::make_mut(definition).connect_back = None;
        }
    }

    fn add(&mut self, file: &str, text: &str) {
        match Definition::parse(text, built_in) {
            Ok(definition) => {
                self.definitions.insert(definition.name.clone(), Arc::new(definition));
            }
            Err(error) => self.complain(file, error),
        }
    }

    fn complain(&mut self, file: &str, error: String) {
        tracing::warn!(file, error, "an agent's definition cannot be used");
        self.broken.push(BrokenDefinition { file: file.to_owned(), error });
    }
}

fn built_in(name: &str) -> Option<Table> {
    BUILT_IN.iter().find(|(built_in, _)| *built_in == name)?.1.parse().ok()
}

/// In the order of their names, so that of two with the same agent the same one wins every time.
fn files_of(folder: &Path) -> Vec<std::path::PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_definition_loads_and_none_is_forgotten() {
        let registry = Registry::load(None);
        assert_eq!(registry.broken, []);
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../agents"));
        let files: Vec<String> =
            files_of(folder).iter().map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
        assert_eq!(registry.definitions.keys().cloned().collect::<Vec<_>>(), files);
    }

    #[test]
    fn a_broken_file_is_reported_by_name_and_the_others_load() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("bad.toml"), "name = 3").unwrap();
        let mine = "name = \"codex\"\ncommand = \"mine\"\nprompt = \"stdin\"\noutput = \"text\"\n";
        std::fs::write(folder.path().join("codex.toml"), mine).unwrap();
        let registry = Registry::load(Some(folder.path()));
        assert_eq!(registry.broken.len(), 1);
        assert!(registry.broken[0].file.ends_with("bad.toml"), "{:?}", registry.broken);
        assert_eq!(registry.definitions["codex"].command, "mine", "the user's own wins");
        assert!(registry.definitions.contains_key("claude"));
    }
}
