//! Whether `matsu` on the PATH is this program: plugins of AI clients start it by that name.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{Finding, good, note};
use crate::compose::VERSION;
use crate::config::Config;
use crate::process;

pub fn on_path(config: &Config) -> Finding {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => {
            return note("program", format!("its path is unknown: {error}"), "start it again by its full path");
        }
    };
    let folders = config.environment.get("PATH").map(String::as_str).unwrap_or_default();
    let Some(first) = std::env::split_paths(folders).map(|folder| folder.join("matsu")).find(|file| is_program(file))
    else {
        return good("program", format!("{}; no matsu is on the PATH", program.display()));
    };
    if is_same(&first, &program) {
        return good("program", format!("{}, the first matsu on the PATH", program.display()));
    }
    // A launcher, such as the one of npm, is another file that starts the same version.
    let other = match process::version_of(&first) {
        Ok(said) if said == format!("matsu {VERSION}") => {
            return good("program", format!("{}; {} starts the same version", program.display(), first.display()));
        }
        Ok(said) => format!("it says {said:?} for --version"),
        Err(error) => format!("it does not say its version: {error:#}"),
    };
    note(
        "program",
        format!(
            "this is {}, version {VERSION}, but {} comes first on the PATH: {other}",
            program.display(),
            first.display()
        ),
        format!(
            "plugins of AI clients start the first matsu on the PATH: remove {}, or put the folder of this program first",
            first.display()
        ),
    )
}

fn is_program(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

fn is_same(one: &Path, other: &Path) -> bool {
    matches!((std::fs::canonicalize(one), std::fs::canonicalize(other)), (Ok(one), Ok(other)) if one == other)
}
