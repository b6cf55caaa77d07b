//! What every fuzz program shares.

/// The program of one target.
#[macro_export]
macro_rules! target {
    ($name:literal) => {
        libfuzzer_sys::fuzz_target!(init: $crate::abort_on_own_panics(), |data: &[u8]| {
            matsu_fuzz::targets::run($name, data);
        });
    };
}

/// libFuzzer's hook ends the process at every panic, also at one that the product catches because a library cannot do
/// without. So only a panic of our own code ends it at once; another one ends it if nothing catches it.
pub fn abort_on_own_panics() {
    let end = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let file = info.location().map_or("", |place| place.file());
        if !file.contains("/registry/src/") && !file.starts_with("/rustc/") {
            end(info);
        }
    }));
}
