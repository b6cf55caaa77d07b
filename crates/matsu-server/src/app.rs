//! What every handler can reach. Cheap to clone; holds no state of any caller.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use matsu_core::clock::Clock;
use matsu_core::limits::HAND_OVER_KEPT;
use matsu_core::ports::notice_channel::NoticeChannel;
use matsu_runtime::Runtime;
use matsu_runtime::models::chat::LiveChats;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::auth::Tokens;
use crate::auth::login::LoginCodes;
use crate::auth::open_calls::OpenCalls;
use crate::auth::origin::Addresses;
use crate::auth::refusals::Refusals;
use crate::connections::resumable::Resumable;
use crate::limits::bounds::Bounds;
use crate::limits::holds::Holds;
use crate::limits::hooks::Hooks;
use crate::limits::streams::Streams;

/// Renders the metrics of this process in Prometheus' text format.
pub type RenderMetrics = Arc<dyn Fn() -> String + Send + Sync>;

/// Looks at everything that can be wrong, as `matsu doctor` does, and answers with the same JSON.
pub type Doctor = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = serde_json::Value> + Send>> + Send + Sync>;

/// The settings that this process goes by, as `matsu config show` compares them.
pub type InUse = Arc<dyn Fn() -> serde_json::Value + Send + Sync>;

pub struct AppOptions {
    pub runtime: Runtime,
    pub version: String,
    /// Which store this is, without any password: one data directory may be used with several.
    pub store: String,
    /// Cancelled when the process is to end: open waits are answered and no new ones taken.
    pub shutdown: CancellationToken,
    pub metrics: RenderMetrics,
    pub test_jobs: TestJobs,
}

/// Whether the hidden routes that make test jobs are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestJobs {
    Offered,
    Hidden,
}

#[derive(Clone)]
pub struct App {
    inner: Arc<Inner>,
}

struct Inner {
    options: AppOptions,
    tokens: Tokens,
    refusals: Refusals,
    open_calls: OpenCalls,
    login_codes: LoginCodes,
    streams: Streams,
    hooks: Hooks,
    holds: Holds,
    resumable: Resumable,
    doctor: OnceLock<Doctor>,
    settings: OnceLock<InUse>,
    chats: OnceLock<LiveChats>,
    channels: RwLock<Arc<[Arc<dyn NoticeChannel>]>>,
    addresses: OnceLock<Addresses>,
    bounds: OnceLock<Bounds>,
    hand_over: HandOver,
    end: CancellationToken,
    presence: Presence,
}

impl App {
    #[must_use]
    pub fn new(options: AppOptions) -> Self {
        let tokens = Tokens::new(&options.runtime);
        let presence = Presence::new(*options.runtime.clock());
        let refusals = Refusals::new(*options.runtime.clock());
        let hooks = Hooks::new(*options.runtime.clock());
        let login_codes = LoginCodes::new(*options.runtime.clock());
        Self {
            inner: Arc::new(Inner {
                tokens,
                refusals,
                open_calls: OpenCalls::default(),
                login_codes,
                streams: Streams::default(),
                hooks,
                holds: Holds::default(),
                resumable: Resumable::default(),
                doctor: OnceLock::new(),
                settings: OnceLock::new(),
                chats: OnceLock::new(),
                channels: RwLock::default(),
                addresses: OnceLock::new(),
                bounds: OnceLock::new(),
                presence,
                hand_over: HandOver::default(),
                end: CancellationToken::new(),
                options,
            }),
        }
    }

    #[must_use]
    pub fn runtime(&self) -> &Runtime {
        &self.inner.options.runtime
    }

    #[must_use]
    pub fn version(&self) -> &str {
        &self.inner.options.version
    }

    #[must_use]
    pub fn store_name(&self) -> &str {
        &self.inner.options.store
    }

    #[must_use]
    pub fn shutdown(&self) -> &CancellationToken {
        &self.inner.options.shutdown
    }

    #[must_use]
    pub fn metrics(&self) -> String {
        (self.inner.options.metrics)()
    }

    #[must_use]
    pub fn test_jobs(&self) -> TestJobs {
        self.inner.options.test_jobs
    }

    #[must_use]
    pub fn tokens(&self) -> &Tokens {
        &self.inner.tokens
    }

    #[must_use]
    pub fn refusals(&self) -> &Refusals {
        &self.inner.refusals
    }

    #[must_use]
    pub fn open_calls(&self) -> &OpenCalls {
        &self.inner.open_calls
    }

    #[must_use]
    pub fn login_codes(&self) -> &LoginCodes {
        &self.inner.login_codes
    }

    #[must_use]
    pub fn streams(&self) -> &Streams {
        &self.inner.streams
    }

    /// What bounds requests to webhooks.
    #[must_use]
    pub fn hooks(&self) -> &Hooks {
        &self.inner.hooks
    }

    /// How long clients are held at most, after what they have cut.
    #[must_use]
    pub fn holds(&self) -> &Holds {
        &self.inner.holds
    }

    /// What the last answers over HTTP show.
    #[must_use]
    pub fn resumable(&self) -> &Resumable {
        &self.inner.resumable
    }

    /// Under which addresses requests may come, besides those of loopback. The first ones count.
    pub fn set_addresses(&self, addresses: Addresses) {
        let _ = self.inner.addresses.set(addresses);
    }

    #[must_use]
    pub fn addresses(&self) -> &Addresses {
        self.inner.addresses.get_or_init(Addresses::default)
    }

    /// How much is taken from whom, and how long. The first ones count.
    pub fn bound(&self, bounds: Bounds) {
        let _ = self.inner.bounds.set(bounds);
    }

    #[must_use]
    pub fn bounds(&self) -> &Bounds {
        self.inner.bounds.get_or_init(Bounds::default)
    }

    /// Sets what answers in chats with models. The first one counts.
    pub fn host_chats(&self, chats: LiveChats) {
        let _ = self.inner.chats.set(chats);
    }

    /// Chats with models, where this process answers in them.
    #[must_use]
    pub fn chats(&self) -> Option<&LiveChats> {
        self.inner.chats.get()
    }

    /// How people are reached from here, from now on.
    pub fn set_channels(&self, channels: Vec<Arc<dyn NoticeChannel>>) {
        *self.inner.channels.write().unwrap_or_else(PoisonError::into_inner) = channels.into();
    }

    /// The channels to people; none where this process sends no notices.
    #[must_use]
    pub fn channels(&self) -> Arc<[Arc<dyn NoticeChannel>]> {
        Arc::clone(&self.inner.channels.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets what looks at what this crate does not know: files, programs, ports. The first one counts.
    pub fn set_doctor(&self, doctor: Doctor) {
        let _ = self.inner.doctor.set(doctor);
    }

    #[must_use]
    pub fn doctor(&self) -> Option<&Doctor> {
        self.inner.doctor.get()
    }

    /// Sets what knows the settings in use. The first one counts.
    pub fn set_settings(&self, settings: InUse) {
        let _ = self.inner.settings.set(settings);
    }

    #[must_use]
    pub fn settings(&self) -> Option<serde_json::Value> {
        self.inner.settings.get().map(|settings| settings())
    }

    #[must_use]
    pub fn hand_over(&self) -> &HandOver {
        &self.inner.hand_over
    }

    /// Cancelled when a person has asked this process to end.
    #[must_use]
    pub fn end(&self) -> &CancellationToken {
        &self.inner.end
    }

    #[must_use]
    pub fn presence(&self) -> &Presence {
        &self.inner.presence
    }
}

/// Whether another version has asked for the store. A wish lives as long as the process that has it: it is repeated, and
/// forgotten when it no longer is.
#[derive(Default)]
pub struct HandOver {
    asked: Notify,
    wish: Mutex<Option<(String, Instant)>>,
}

impl HandOver {
    /// A starter of that version waits for the store, and says so again and again.
    pub fn ask(&self, version: &str, now: Instant) {
        *self.wish.lock().unwrap_or_else(PoisonError::into_inner) = Some((version.to_owned(), now));
        self.asked.notify_one();
    }

    /// Returns when a process has asked since it last returned.
    pub async fn asked(&self) {
        self.asked.notified().await;
    }

    /// Who waits for the store, and how long ago it last said so.
    #[must_use]
    pub fn successor(&self, now: Instant) -> Option<(String, Duration)> {
        let wish = self.wish.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (version, at) = wish?;
        let age = now.saturating_duration_since(at);
        (age < HAND_OVER_KEPT).then_some((version, age))
    }
}

/// Who is connected, for a daemon that ends when no client needs it.
pub struct Presence {
    clock: Clock,
    connections: AtomicUsize,
    last_seen: watch::Sender<Instant>,
}

impl Presence {
    fn new(clock: Clock) -> Self {
        Self { clock, connections: AtomicUsize::new(0), last_seen: watch::Sender::new(clock.instant()) }
    }

    /// Counts a connection until the guard is dropped.
    #[must_use]
    pub fn enter(app: &App) -> PresenceGuard {
        app.presence().connections.fetch_add(1, Ordering::SeqCst);
        PresenceGuard { app: app.clone() }
    }

    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// How long no client has been connected; `None` while one is.
    #[must_use]
    pub fn idle_since(&self) -> Option<Instant> {
        (self.connections() == 0).then(|| *self.last_seen.borrow())
    }
}

/// One open connection.
pub struct PresenceGuard {
    app: App,
}

impl Drop for PresenceGuard {
    fn drop(&mut self) {
        let presence = self.app.presence();
        presence.last_seen.send_replace(presence.clock.instant());
        presence.connections.fetch_sub(1, Ordering::SeqCst);
    }
}
