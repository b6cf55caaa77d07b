//! The daemon follows its files: when the settings or a definition of an agent change, it goes by them within seconds.
//! A file that cannot be used is refused whole, and what was in use stays.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use anyhow::Result;
use matsu_adapters::agents::ReloadingHost;
use matsu_adapters::providers::agent;
use matsu_core::clock::Clock;
use matsu_runtime::notify;
use matsu_server::App;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::cli::Global;
use crate::compose;
use crate::config::{Config, Flags, without_password};
use crate::daemon::chats::DaemonChats;

/// A file that was just written is read after it has been the same twice.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub struct Following {
    global: Global,
    flags: Flags,
    agents: Arc<ReloadingHost>,
    in_use: RwLock<Config>,
    /// The files as they were when the first settings were read.
    read: Stamps,
    /// Absent before the daemon answers in chats with models, and when it ends.
    chats: Mutex<Option<DaemonChats>>,
    /// Why the files as they are now are not used.
    refused: Mutex<Option<String>>,
}

impl Following {
    /// `read`: what [`stamps`] returned right after `config` was read, so that a change since then is noticed.
    pub fn new(global: Global, flags: Flags, config: Config, read: Stamps, agents: Arc<ReloadingHost>) -> Self {
        Self {
            global,
            flags,
            agents,
            in_use: RwLock::new(config),
            read,
            chats: Mutex::default(),
            refused: Mutex::default(),
        }
    }

    /// The settings that this process goes by.
    pub fn config(&self) -> Config {
        self.in_use.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Begins to answer in chats with models. To be called before a client can connect.
    pub fn host_chats(&self, app: &App) {
        self.host_chats_by(&self.config(), app);
    }

    fn host_chats_by(&self, config: &Config, app: &App) {
        *self.chats.lock().unwrap_or_else(PoisonError::into_inner) = Some(DaemonChats::begin(config, app));
    }

    pub async fn end_chats(&self, app: &App) {
        let hosted = self.chats.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(hosted) = hosted {
            hosted.end(app).await;
        }
    }

    /// For `matsu config show`.
    pub fn shown(&self) -> Value {
        let config = self.config();
        let settings = config.layers.all().map(|(key, setting)| {
            let shown = json!({ "value": without_password(&setting.value), "from": setting.source.to_string() });
            (key.name.to_owned(), shown)
        });
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone();
        json!({ "settings": settings.collect::<serde_json::Map<_, _>>(), "refused": refused })
    }

    /// Sends notices, and follows the files. Ends when it is dropped.
    pub async fn run(&self, app: App) {
        let mut sending = notices(&app);
        let (mut used, mut seen) = (self.read.clone(), None);
        loop {
            Clock::system().sleep(LOOK_EVERY).await;
            let now = stamps(&self.config());
            let is_settled = seen.as_ref() == Some(&now);
            if now == used || !is_settled {
                seen = Some(now);
                continue;
            }
            used = now;
            let notified = self.config().layers.notify;
            let refused = self.reload(&app).err().map(|error| format!("{error:#}"));
            match &refused {
                None => tracing::info!("settings and definitions of agents were read again"),
                Some(error) => tracing::warn!(error, "the changed settings cannot be used; the earlier ones stay"),
            }
            *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = refused;
            let config = self.config();
            if config.layers.notify != notified {
                sending.shutdown().await;
                app.set_channels(compose::channels(&config, app.runtime().store()));
                sending = notices(&app);
            }
        }
    }

    /// Everything that can fail comes first, so that no half of a file is used.
    fn reload(&self, app: &App) -> Result<()> {
        let newer = Config::load(&self.global, &self.flags)?;
        let before = self.config();
        let mut config = before.clone();
        config.layers.take_over(newer.layers);
        config.channels()?;
        let roster = compose::roster(&config)?;
        // What research has opened stays, unless its settings changed or it asks an agent, whose definition may have.
        let asks_agent = compose::research_model_in_use(&config).is_ok_and(|name| name.starts_with(agent::PREFIX));
        let is_same = !asks_agent && !config.layers.differ_for_research(&before.layers);
        let kept = app.runtime().research().filter(|_| is_same);
        let research = match kept {
            Some(kept) => kept,
            None => Arc::new(compose::research_kit(&config)?),
        };
        app.runtime().reload(compose::settings(&config, research));
        match app.chats() {
            Some(chats) => chats.reload(roster, compose::live_settings(&config)),
            // The settings that this process was started with could not be used for chats.
            None => self.host_chats_by(&config, app),
        }
        self.agents.reload(compose::host_options(&config));
        *self.in_use.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }
}

/// Sends notices over the channels of the moment.
fn notices(app: &App) -> JoinSet<()> {
    let mut sending = JoinSet::new();
    let app = app.clone();
    sending.spawn(async move { notify::run(app.runtime(), &app.channels(), app.shutdown()).await });
    sending
}

/// What tells one state of the files from another.
pub type Stamps = Vec<(PathBuf, Option<Stamp>)>;

/// The configuration file and the definitions of agents, as they are now.
pub fn stamps(config: &Config) -> Stamps {
    let mut files: Vec<PathBuf> = config.file.clone().into_iter().collect();
    let folder = config.agent_definitions();
    let entries = folder.and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    files.extend(entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|kind| kind == "toml")));
    files.sort();
    files.into_iter().map(|file| (file.clone(), stamp(&file))).collect()
}

#[derive(Clone, PartialEq, Eq)]
pub struct Stamp {
    inode: u64,
    bytes: u64,
    written: (i64, i64),
}

fn stamp(file: &Path) -> Option<Stamp> {
    let there = fs::metadata(file).ok()?;
    Some(Stamp { inode: there.ino(), bytes: there.len(), written: (there.mtime(), there.mtime_nsec()) })
}
