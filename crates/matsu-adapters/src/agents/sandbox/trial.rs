//! Which confinement this machine offers, found by trying the whole set-up once, not by reading version numbers.

use std::path::Path;

use super::fence;
use super::view::{Entry, Network, SYSTEM, View};
use crate::agents::process;
use crate::agents::removal::remove_folder;
use crate::agents::runs_folder::make_private;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// Why a view in namespaces cannot be built; `None`: it can.
    pub sealed: Option<String>,
    /// Why Landlock cannot restrict; `None`: it can.
    pub fenced: Option<String>,
    /// Signals and abstract sockets are restricted too.
    pub scopes: bool,
    /// A program in a view can make one of its own: Codex does.
    pub can_nest: bool,
}

/// Starts `/bin/true` in a view with all kinds of entries, on the file system that runs will use.
pub fn try_all(data_dir: &Path, matsu: &Path) -> Offer {
    let sealed = try_sealed(data_dir, Path::new("/bin/true"), &[]).err();
    let can_nest = sealed.is_none() && try_sealed(data_dir, matsu, &["__nest"]).is_ok();
    let fenced = (!fence::is_available()).then(|| "the kernel has no Landlock, or it is switched off".to_owned());
    Offer { sealed, fenced, scopes: fence::has_scopes(), can_nest }
}

fn try_sealed(data_dir: &Path, program: &Path, args: &[&str]) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    make_private(data_dir).map_err(text)?;
    let folder = tempfile::Builder::new().prefix("trial-").tempdir_in(data_dir).map_err(text)?;
    let path = |name: &str| folder.path().join(name);
    for name in ["root", "tmp", "home", "lower", "upper", "work"] {
        make_private(&path(name)).map_err(text)?;
    }
    let target = path("home");
    let layer = Entry::Layer { lower: path("lower"), upper: path("upper"), work: path("work"), target };
    let mut entries = vec![Entry::Write(path("home")), layer, Entry::Cover(path("home"))];
    let is_system = SYSTEM.iter().any(|name| program.starts_with(Path::new("/").join(name)));
    entries.extend((!is_system).then(|| Entry::Read(program.to_owned())));
    let view = View { root: path("root"), tmp: path("tmp"), entries, network: Network::Shared };
    let tried = process::try_view(view, program, args);
    // A layer leaves a folder behind that an ordinary user cannot enter, and that its own removal would stop at.
    let _ = remove_folder(folder.path());
    tried
}
