//! Which crate may know which: the arrows of the architecture, read from `cargo metadata`.
//!
//! ```text
//! matsu → {server, store, adapters};  server → runtime → core;  store → core;  adapters → reader → core
//! ```
//! Dev-dependencies are free, because tests of the runtime and the server run on a real store.

use serde_json::Value;

use super::workspace::Workspace;

pub struct Package {
    pub name: String,
    pub dependencies: Vec<Dependency>,
    pub features: Vec<String>,
}

pub struct Dependency {
    pub name: String,
    pub is_dev: bool,
}

/// What one of our crates may and may not depend on.
struct Rule {
    package: &'static str,
    ours: &'static [&'static str],
    never: &'static [&'static str],
}

const TESTKIT: &str = "matsu-testkit";
const DRIVERS: &[&str] =
    &["axum", "deadpool-postgres", "hyper", "hyper-util", "reqwest", "rmcp", "rusqlite", "sqlx", "tokio-postgres"];
const DATABASES: &[&str] = &["deadpool-postgres", "rusqlite", "sqlx", "tokio-postgres"];
const SERVERS: &[&str] = &["axum"];
const OUTWARD: &[&str] = &["axum", "hyper", "landlock", "reqwest", "rmcp", "rusqlite", "rustix", "tokio"];
/// Documents are parsed by matsu-reader, which only reader processes call.
const PARSERS: &[&str] = &["axum", "dom_query", "dom_smoothie", "encoding_rs", "pdf-extract"];

const RULES: &[Rule] = &[
    Rule { package: "matsu-core", ours: &[], never: DRIVERS },
    Rule { package: "matsu-runtime", ours: &["matsu-core"], never: DRIVERS },
    Rule { package: "matsu-store", ours: &["matsu-core"], never: SERVERS },
    // It reads foreign bytes: what it cannot name it cannot reach.
    Rule { package: "matsu-reader", ours: &["matsu-core"], never: OUTWARD },
    Rule { package: "matsu-adapters", ours: &["matsu-core", "matsu-reader"], never: PARSERS },
    Rule { package: "matsu-server", ours: &["matsu-core", "matsu-runtime"], never: DATABASES },
    Rule {
        package: "matsu",
        ours: &["matsu-core", "matsu-runtime", "matsu-store", "matsu-adapters", "matsu-server"],
        never: &[],
    },
    // The fixture of the official conformance suite; a program for developers.
    Rule {
        package: "matsu-conformance",
        ours: &["matsu-core", "matsu-runtime", "matsu-store", "matsu-server"],
        never: DATABASES,
    },
    // What the fuzzers run, and the test that runs their corpora.
    Rule {
        package: "matsu-fuzz",
        ours: &["matsu-core", "matsu-runtime", "matsu-reader", "matsu-adapters", "matsu-server"],
        never: DATABASES,
    },
    Rule { package: TESTKIT, ours: &["matsu-core"], never: &[] },
    Rule { package: "xtask", ours: &[], never: &[] },
];

pub fn findings(workspace: &Workspace) -> Vec<String> {
    workspace.packages.iter().flat_map(|package| package_findings(package, &workspace.packages)).collect()
}

fn package_findings(package: &Package, all: &[Package]) -> Vec<String> {
    let name = &package.name;
    let place = if name == "xtask" { "xtask/Cargo.toml:1".to_owned() } else { format!("crates/{name}/Cargo.toml:1") };
    let mut found = Vec::new();
    if !package.features.is_empty() {
        let features = package.features.join(", ");
        found.push(format!("{place}: cargo features ({features}): there is one build; choose at run time"));
    }
    let Some(rule) = RULES.iter().find(|rule| rule.package == name) else {
        found.push(format!("{place}: {name} has no rule: add one to xtask/src/tidy/dependencies.rs"));
        return found;
    };
    for dependency in package.dependencies.iter().filter(|dependency| !dependency.is_dev) {
        let other = dependency.name.as_str();
        let is_ours = all.iter().any(|package| package.name == other);
        if other == TESTKIT {
            found.push(format!("{place}: {name} ships {TESTKIT}: make it a dev-dependency"));
        } else if is_ours && !rule.ours.contains(&other) {
            found.push(format!("{place}: {name} must not depend on {other}: use a port of matsu-core"));
        } else if rule.never.contains(&other) {
            found
                .push(format!("{place}: {name} must not depend on {other}: only an adapter may use it, behind a port"));
        }
    }
    found
}

/// Reads what `cargo metadata --no-deps` prints.
pub fn packages_from_metadata(metadata: &Value) -> Vec<Package> {
    list(&metadata["packages"])
        .iter()
        .map(|package| Package {
            name: text(&package["name"]),
            dependencies: list(&package["dependencies"])
                .iter()
                .map(|dependency| Dependency {
                    name: text(&dependency["name"]),
                    is_dev: dependency["kind"].as_str() == Some("dev"),
                })
                .collect(),
            features: package["features"].as_object().into_iter().flat_map(|map| map.keys().cloned()).collect(),
        })
        .collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::workspace::Workspace;
    use super::{findings, packages_from_metadata};

    /// A dependency as (name, kind).
    type Arrow<'a> = (&'a str, Option<&'a str>);

    fn found(packages: &[(&str, &[Arrow<'_>])]) -> Vec<String> {
        let packages: Vec<Value> = packages
            .iter()
            .map(|(name, dependencies)| {
                let dependencies: Vec<Value> =
                    dependencies.iter().map(|(name, kind)| json!({"name": name, "kind": kind})).collect();
                json!({"name": name, "dependencies": dependencies, "features": {}})
            })
            .collect();
        let packages = packages_from_metadata(&json!({ "packages": packages }));
        findings(&Workspace { packages, ..Workspace::default() })
    }

    #[test]
    fn lets_the_arrows_of_the_architecture_pass() {
        let found = found(&[
            ("matsu-core", &[("serde", None)]),
            ("matsu-store", &[("matsu-core", None), ("rusqlite", None)]),
            ("matsu-testkit", &[("matsu-core", None)]),
            ("matsu-runtime", &[("matsu-core", None), ("matsu-store", Some("dev")), ("matsu-testkit", Some("dev"))]),
            ("matsu-server", &[("matsu-runtime", None), ("axum", None), ("matsu-store", Some("dev"))]),
            ("matsu", &[("matsu-server", None), ("matsu-store", None)]),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn finds_an_arrow_that_points_the_wrong_way() {
        let cases: &[(&str, &str)] = &[
            ("matsu-core", "rusqlite"),
            ("matsu-core", "matsu-runtime"),
            ("matsu-runtime", "matsu-store"),
            ("matsu-runtime", "reqwest"),
            ("matsu-server", "matsu-store"),
            ("matsu-store", "matsu-runtime"),
            ("matsu", "matsu-testkit"),
            ("xtask", "matsu-core"),
        ];
        for (package, dependency) in cases {
            let found = found(&[(package, &[(dependency, None)]), (dependency, &[])]);
            let start = format!("{package}/Cargo.toml:1: {package} ");
            let count = found.iter().filter(|finding| finding.contains(&start) && finding.contains(dependency)).count();
            assert_eq!(count, 1, "{package} {dependency}: {found:?}");
        }
        assert_eq!(found(&[("matsu-core", &[("rusqlite", Some("build"))])]).len(), 1);
    }

    #[test]
    fn finds_features_and_crates_without_a_rule() {
        let metadata = json!({"packages": [{"name": "matsu-extra", "dependencies": [], "features": {"fast": []}}]});
        let workspace = Workspace { packages: packages_from_metadata(&metadata), ..Workspace::default() };
        let found = findings(&workspace);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("fast") && found[1].contains("no rule"), "{found:?}");
    }
}
