//! The processes that Matsu starts for itself: they are not commands, so no command line is built for them. Every run
//! starts several, and each counts in the time that a run takes to start.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use matsu_adapters::agents::sandbox::view::Network;
use matsu_adapters::agents::{sandbox, shim, supervisor};
use matsu_adapters::{descriptors, reading};

/// One of them.
#[derive(Debug, PartialEq, Eq)]
enum Internal {
    /// Reads documents; started by the daemon.
    Read,
    /// The parent of the processes of one command; started by the daemon.
    Shim,
    /// The parent of the processes of one run; started by the daemon.
    Supervise(PathBuf),
    /// Enters the namespaces of a run; started by its supervisor.
    Seal(Network),
    /// Tries namespaces inside those of a run.
    Nest,
    /// The first process in those namespaces.
    Init,
    /// Restricts itself by Landlock and becomes the program of a run.
    Fence,
}

/// What these arguments start, if they start one of them. It runs before any thread is there: what it asks of the
/// kernel must hold for the whole process.
pub fn run(args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let internal = parse(args)?;
    // A run must not get what the daemon's own parent left open.
    descriptors::close_inherited();
    Some(match internal {
        Internal::Read => reading::child::run(),
        Internal::Shim => shim::run(),
        Internal::Supervise(folder) => supervisor::run(&folder),
        Internal::Seal(network) => sandbox::run_seal(network),
        Internal::Nest => sandbox::run_nest(),
        Internal::Init => sandbox::run_init(),
        Internal::Fence => sandbox::run_fence(),
    })
}

fn parse(args: impl Iterator<Item = OsString>) -> Option<Internal> {
    let mut args = args.skip(1);
    let (first, second) = (args.next()?, args.next());
    match (first.to_str()?, second) {
        ("__read", None) => Some(Internal::Read),
        ("__run", None) => Some(Internal::Shim),
        ("__supervise", Some(folder)) => Some(Internal::Supervise(folder.into())),
        ("__seal", None) => Some(Internal::Seal(Network::Shared)),
        ("__seal", Some(flag)) if flag == "--no-network" => Some(Internal::Seal(Network::None)),
        ("__nest", None) => Some(Internal::Nest),
        ("__init", None) => Some(Internal::Init),
        ("__fence", None) => Some(Internal::Fence),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Option<Internal> {
        parse(args.iter().map(OsString::from))
    }

    #[test]
    fn only_whole_lines_are_taken() {
        assert_eq!(parsed(&["matsu", "__seal", "--no-network"]), Some(Internal::Seal(Network::None)));
        assert_eq!(parsed(&["matsu", "__supervise", "/a b"]), Some(Internal::Supervise("/a b".into())));
        for other in [&["matsu"][..], &["matsu", "__supervise"], &["matsu", "__seal", "--other"], &["matsu", "run"]] {
            assert_eq!(parsed(other), None, "{other:?}");
        }
    }
}
