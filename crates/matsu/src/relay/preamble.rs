//! What a client is known by.

use std::path::{Path, PathBuf};

use matsu_core::clock::Clock;
use matsu_core::id::NodeId;
use matsu_runtime::tool::folders::project_of;
use matsu_server::mcp::socket::Preamble;

use super::Options;
use crate::compose::VERSION;

/// What a client is known by: the daemon gets it from a relay, and `--no-daemon` uses it directly.
pub fn preamble(args: &Options) -> Preamble {
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    let started_in = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    Preamble {
        version: VERSION.to_owned(),
        instance: NodeId::mint(Clock::system().now()).to_string(),
        tools: args.tools.clone(),
        hold: args.hold,
        roots: args.root.iter().filter(|root| !is_whole_disk(root, &started_in)).map(absolute).collect(),
        cwd: std::env::current_dir().ok(),
        project: Some(project_of(&started_in)),
        session_token: crate::config::session_token(),
        token: None,
        acknowledges: true,
    }
}

/// `--root .` in a client that was started in `/` would open the whole disk; so would enough `..`.
fn is_whole_disk(root: &Path, started_in: &Path) -> bool {
    let is_whole =
        !root.is_absolute() && started_in.join(root).canonicalize().is_ok_and(|root| root.parent().is_none());
    if is_whole {
        let started_in = started_in.display();
        tracing::warn!(
            "started in {started_in}, --root {} is the whole disk and is ignored; name a folder",
            root.display()
        );
    }
    is_whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_disk_is_a_root_only_if_it_is_named() {
        for (root, started_in, expected) in [
            (".", "/", true),
            ("", "/", true),
            ("..", "/usr", true),
            ("usr/..", "/", true),
            ("/", "/", false),
            ("/", "/usr", false),
            (".", "/usr", false),
            ("usr", "/", false),
            ("there-is-no-such-folder", "/", false),
        ] {
            assert_eq!(is_whole_disk(Path::new(root), Path::new(started_in)), expected, "{root} in {started_in}");
        }
    }
}
