//! Files that go to models with a line: images.

use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use matsu_core::history::Image;
use matsu_core::limits::IMAGES_BYTES_MAX;

use super::clipboard::base64;

/// The image of a file as Base64, once it is certain that it can be sent.
pub fn read(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    // One byte more than is taken, so that what is too large is seen to be.
    let file = std::fs::File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let most = u64::try_from(IMAGES_BYTES_MAX + 1).unwrap_or(u64::MAX);
    file.take(most).read_to_end(&mut bytes).with_context(|| format!("cannot read {}", path.display()))?;
    if bytes.len() > IMAGES_BYTES_MAX {
        bail!(
            "{} has more than {} kB, which is the most that is sent; make it smaller",
            path.display(),
            IMAGES_BYTES_MAX / 1_000
        );
    }
    match Image::read(&base64(&bytes)) {
        Ok(image) => Ok(image.data),
        Err(why) => bail!("{} cannot be sent: {why}", path.display()),
    }
}
