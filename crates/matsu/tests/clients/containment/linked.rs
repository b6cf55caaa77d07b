//! A home folder and a data directory that are reached through links, as on systems where `/home` is one: what is closed
//! to a run is closed by whatever name it is called.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::{SECRET, prepared};
use crate::home::Home;

/// Where the links of one home lie, outside of it.
fn links(outside: &Path, home: &Home) -> PathBuf {
    outside.join(home.folder().file_name().unwrap())
}

#[test]
fn a_home_and_a_data_directory_behind_links_are_as_closed_as_others() {
    let outside = tempfile::Builder::new().prefix("matsu-links").tempdir().unwrap();
    std::fs::set_permissions(outside.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let prepare = |home: &mut Home| {
        // `data` leads to a folder of another name, and the home folder is called by a link.
        let real = home.path("kept/real-data");
        std::fs::create_dir_all(&real).unwrap();
        symlink("kept/real-data", home.path("data")).unwrap();
        let link = links(outside.path(), home);
        symlink(home.folder(), &link).unwrap();
        home.set("HOME", link.to_str().unwrap());
    };
    prepared(&prepare, |yard| {
        let link = links(outside.path(), &yard.home);
        let (link, home) = (link.display(), yard.home.folder().display().to_string());
        for name in ["project/data", "project/kept"] {
            symlink(format!("../{}", name.rsplit('/').next().unwrap()), yard.home.path(name)).unwrap();
        }
        symlink(format!("{link}/.ssh"), yard.home.path("project/keys")).unwrap();
        yard.home.give_away();
        let script = format!(
            "{{ for home in \"$HOME\" ~ {link} {home} .. /proc/self/root{home} /proc/self/cwd/..; do
               cat $home/data/token $home/kept/real-data/token $home/.ssh/id_ed25519
               find $home/data/ $home/kept/ -name token -exec cat {{}} +
               for name in $home/*/token $home/*/*/token; do cat $name; done
             done
             cat data/token kept/real-data/token keys/id_ed25519; ln -s {link}/data d; cat d/token; }} 2>/dev/null; echo tried"
        );
        let mut printed = String::new();
        // The project itself is named in both ways.
        let through = format!("{link}/project");
        for folder in ["project", through.as_str()] {
            for mode in ["read-only", "workspace-write"] {
                printed += &yard.attack_in(folder, &script, json!({ "mode": mode }));
            }
        }
        assert_eq!(printed.matches("tried").count(), 4, "{}: {printed}", yard.show());
        for folder in [".", &link.to_string()] {
            if yard.is_sealed() {
                printed += &yard.attack_in(folder, &script, json!({}));
                continue;
            }
            let refused = yard.start(folder, &script, json!({}));
            assert_eq!(refused["error_code"], "CONFINEMENT_UNAVAILABLE", "{}: {refused}", yard.show());
        }
        for folder in ["data", "kept/real-data", &format!("{link}/data"), &format!("{link}/.ssh"), "project/keys"] {
            let refused = yard.start(folder, "cat *", json!({}));
            assert_eq!(refused["error_code"], "FORBIDDEN", "{}: {folder}: {refused}", yard.show());
        }
        let token = yard.token();
        assert!(!printed.contains(&token) && !printed.contains(SECRET), "{}: {printed}", yard.show());
    });
}
