//! Where a run really is: where the conversation was, in a tree of its own, in its directory, or nowhere in particular.

use std::path::PathBuf;
use std::sync::Arc;

use matsu_core::ports::agent::{PromptKind, RunOrder, StartError};
use matsu_core::run::Isolation;

use super::confinement::Confiner;
use super::git::Git;
use super::host::{HostOptions, cannot};
use super::place::Place;
use super::runs_folder;
use super::worktree::{Earlier, OpenWish, Worktree};

pub struct Ground {
    pub directory: PathBuf,
    pub worktree: Option<Worktree>,
    pub place: Place,
}

impl Ground {
    /// # Errors
    /// Why there is no such place; nothing is left behind.
    pub async fn find(
        options: &HostOptions,
        confiner: &Arc<Confiner>,
        order: &RunOrder,
        marker: &str,
    ) -> Result<Self, StartError> {
        let resumed = order.resume.as_ref().and_then(|resume| resume.place.as_deref());
        let place = resumed.or(order.input.continues.as_ref().and_then(|continues| continues.place.as_deref()));
        let mut earlier: Option<Place> = place.and_then(|place| serde_json::from_str(place).ok());
        if let Some(place) = earlier.as_mut().filter(|_| order.say == PromptKind::BeginElsewhere) {
            // Folders of another machine; what it has committed may be here as well.
            (place.worktree, place.usage) = (None, None);
        }
        // A new conversation counts from its own beginning.
        let usage = earlier.as_ref().filter(|_| order.resume.is_some()).and_then(|place| place.usage);
        let wished = order.input.directory.as_ref().map(PathBuf::from);
        let job = order.lease.job_id.as_str();
        match (order.input.isolation, wished) {
            (Isolation::Worktree, Some(wished)) => {
                let path = earlier.as_ref().and_then(|place| place.worktree.clone());
                let path = path.unwrap_or_else(|| options.data_dir.join("worktrees").join(job));
                let resolves = order.input.resolves.as_ref().filter(|_| order.say == PromptKind::Message);
                let earlier = earlier
                    .and_then(|place| Some(Earlier { branch: place.branch?, base: place.base, head: place.head }));
                let wish = OpenWish {
                    directory: &wished,
                    path,
                    job,
                    task: order.task_id.as_ref().map(matsu_core::id::TaskId::as_str),
                    message: &order.input.message,
                    earlier,
                    onto: &order.onto,
                    resolves,
                    resolves_on: order.input.resolves_on.as_deref().filter(|_| resolves.is_some()),
                    setup: &order.input.tree,
                    marker: marker.to_owned(),
                    confiner: Arc::clone(confiner),
                    bytes_max: options.bundle_bytes_max,
                    within: options.bundle_within,
                };
                let git = Git::find(&options.environment).map_err(|error| cannot(&error))?;
                let worktree = git.open(&options.data_dir, wish).await.map_err(|error| cannot(&error))?;
                // What it was when the conversation began is another question: an earlier run could write there.
                let directory = &worktree.directory;
                if !directory.canonicalize().is_ok_and(|real| real == *directory) {
                    return Err(cannot(&format!("{} is a link or is reached through one", directory.display())));
                }
                let place = Place {
                    directory: worktree.directory.clone(),
                    worktree: Some(worktree.path.clone()),
                    branch: Some(worktree.branch().to_owned()),
                    base: Some(worktree.base().to_owned()),
                    head: worktree.start().map(str::to_owned),
                    usage,
                };
                Ok(Self { directory: worktree.directory.clone(), place, worktree: Some(worktree) })
            }
            (_, wished) => {
                let scratch = || options.data_dir.join("scratch").join(job);
                let is_scratch = wished.is_none();
                let directory = wished.or(earlier.map(|place| place.directory)).unwrap_or_else(scratch);
                if is_scratch {
                    runs_folder::make_private(&directory).map_err(|error| cannot(&error.to_string()))?;
                }
                if directory.canonicalize().is_ok_and(|real| real != directory) {
                    let shown = directory.display();
                    return Err(cannot(&format!(
                        "the working directory {shown} is a link now; name the folder itself"
                    )));
                }
                let place = Place { usage, ..Place::plain(directory.clone()) };
                Ok(Self { directory, worktree: None, place })
            }
        }
    }

    /// Nothing was started here.
    pub async fn leave(self) {
        if let Some(worktree) = self.worktree {
            worktree.discard().await;
        }
    }
}
