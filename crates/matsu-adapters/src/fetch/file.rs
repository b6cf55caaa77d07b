//! Documents in the owner's folders, as the fetcher reads them: only inside a folder the request names, after every
//! link was followed, so that no name and no link leads out.

use std::io::Read;
use std::path::{Path, PathBuf};

use matsu_core::ports::fetcher::{FetchError, FetchRequest, FetchedPage};
use matsu_core::research::evidence::PageOrigin;
use url::Url;

use super::repository::remote_of;
use crate::engines::local;

/// Reads a `file:` address. `configured` are the folders of searches that name none.
///
/// # Errors
/// `Refused` for anything outside of the folders or not found by `local`; `Status(404)` for what is gone.
pub fn read(request: &FetchRequest, configured: &[PathBuf], bytes_max: usize) -> Result<FetchedPage, FetchError> {
    let refused = |why: &str| FetchError::Refused(why.to_owned());
    let too_large = || {
        let most = bytes_max / (1024 * 1024);
        FetchError::Refused(format!("larger than {most} MB, which is the limit for one file; split it"))
    };
    if !request.engines.iter().any(|engine| engine == local::NAME) {
        return Err(refused("a file address is read only if the engine local found it"));
    }
    let path = Url::parse(&request.url).ok().and_then(|url| url.to_file_path().ok());
    let path = path.ok_or_else(|| refused("not the address of a file"))?;
    let real = path.canonicalize().map_err(|_| FetchError::Status(404))?;
    let configured = local::configured_for(&request.owner, configured);
    let folder = enclosing(&real, &local::folders_of(&request.folders, configured))
        .ok_or_else(|| refused("outside the folders of this search"))?;
    let media_type = local::media_type(&real).ok_or_else(|| refused("not a kind of document that Matsu reads"))?;
    let size = real.metadata().map_err(|_| FetchError::Status(404))?.len();
    if size > bytes_max as u64 {
        return Err(too_large());
    }
    // It may have grown since.
    let mut body = Vec::new();
    let read =
        local::open_inside(&folder, &real).and_then(|file| file.take(bytes_max as u64 + 1).read_to_end(&mut body));
    read.map_err(|error| FetchError::Failed(error.kind().to_string()))?;
    if body.len() > bytes_max {
        return Err(too_large());
    }
    Ok(FetchedPage {
        url: request.url.clone(),
        body,
        media_type: media_type.to_owned(),
        etag: None,
        last_modified: None,
        origin: PageOrigin::Local,
        is_private: true,
        domain: Some(source_of(&real, &folder)),
    })
}

/// What a document counts as that says nothing about its origin: its repository, or else itself. Which folder a person
/// keeps documents in says nothing about where they come from.
fn source_of(path: &Path, folder: &Path) -> String {
    if let Some(repository) = path.parent().and_then(remote_of) {
        return format!("repo:{repository}");
    }
    let inside = path.strip_prefix(folder).unwrap_or(path).to_string_lossy();
    format!("{}/{inside}", local::domain_of_folder(folder))
}

fn enclosing(path: &Path, folders: &[PathBuf]) -> Option<PathBuf> {
    folders.iter().find(|folder| path.starts_with(folder)).cloned()
}
