//! Every input that the fuzzers keep, through the same functions, on the stable compiler: what was found stays mended.
#![allow(clippy::unwrap_used, reason = "a test says what it expects")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use matsu_fuzz::{TARGETS, Target};

/// A reader process parses on a stack of this size.
const STACK_BYTES: usize = 64 * 1024 * 1024;
/// What the corpus of one target may take in the repository.
const FILES_MAX: usize = 120;
const BYTES_MAX: u64 = 320 * 1024;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

/// The inputs that a property does not hold for.
fn failures(target: &Target) -> Vec<String> {
    let folder = fuzz().join("corpus").join(target.name);
    let is_bad = |name: &String| {
        let input = std::fs::read(folder.join(name)).unwrap();
        std::panic::catch_unwind(|| (target.run)(&input)).is_err()
    };
    names(&folder).into_iter().filter(is_bad).map(|name| format!("fuzz/corpus/{}/{name}", target.name)).collect()
}

#[test]
fn every_property_holds_for_every_input_of_the_corpora() {
    let found = std::thread::scope(|scope| {
        let start =
            |target| std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, move || failures(target));
        let running: Vec<_> = TARGETS.iter().map(|target| start(target).unwrap()).collect();
        running.into_iter().flat_map(|running| running.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn every_target_has_a_program_and_a_corpus_of_a_bearable_size() {
    let known: BTreeSet<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    assert_eq!(names(&fuzz().join("corpus")), known);
    let programs = names(&fuzz().join("fuzz_targets"));
    assert_eq!(programs, known.iter().map(|name| format!("{name}.rs")).collect());
    let manifest = std::fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    for name in &known {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} has no [[bin]] in fuzz/Cargo.toml");
        let folder = fuzz().join("corpus").join(name);
        let files = names(&folder);
        let bytes: u64 = files.iter().map(|file| folder.join(file).metadata().unwrap().len()).sum();
        assert!(
            (1..=FILES_MAX).contains(&files.len()) && bytes <= BYTES_MAX,
            "{name}: {} files, {bytes} bytes",
            files.len()
        );
    }
}
