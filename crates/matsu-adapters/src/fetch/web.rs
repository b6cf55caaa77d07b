//! The fetcher behind the port: guard, robots.txt, cookies, one request, and what the answer amounts to.
//!
//! Nothing here follows a redirect or waits for a turn; the caller does, and asks for clearance at every hop.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use matsu_core::clock::Clock;
use matsu_core::ports::fetcher::{Clearance, FetchError, FetchMeans, FetchOutcome, FetchRequest, FetchedPage, Fetcher};
use matsu_core::research::evidence::PageOrigin;
use url::Url;

use super::cookies;
use super::file;
use super::robots::{RobotsCache, Wishes};
use super::scripts::needs_scripts;
use super::vault::FileVault;
use super::walls;
use crate::http;
use crate::http::answer::HttpReply;
use crate::http::guard::{AddressGuard, Exception};
use crate::http::names::{GuardedNames, Names};
use crate::reading::DocumentReader;

/// The word that robots.txt addresses us by.
pub const AGENT: &str = "matsu";

/// robots.txt is read up to here; RFC 9309 asks for at least 500 KiB.
const ROBOTS_BYTES_MAX: usize = 512 * 1024;
const ROBOTS_HOPS_MAX: usize = 5;

/// A browser that runs a page's scripts. Every connection it makes goes through the same guard.
#[async_trait]
pub trait PageBrowser: Send + Sync {
    async fn visit(&self, url: &Url, cookies: &[cookies::Cookie]) -> Result<Visited, FetchError>;
}

/// What a browser shows once scripts have run.
#[derive(Clone, Debug)]
pub struct Visited {
    pub url: String,
    pub status: u16,
    pub html: String,
}

/// What the operator can set.
#[derive(Clone, Debug)]
pub struct FetchSettings {
    pub user_agent: String,
    /// Pause between two requests to one host, unless robots.txt asks for a longer one.
    pub step: Duration,
    pub daily_max: Option<u32>,
    pub bytes_max: usize,
    pub time_max: Duration,
    /// Hosts that may be fetched although they are not public.
    pub exceptions: Vec<Exception>,
    /// Where searches look that name no folder.
    pub folders: Vec<PathBuf>,
}

impl Default for FetchSettings {
    fn default() -> Self {
        Self {
            user_agent: format!(
                "Matsu/{} (research for one user; obeys robots.txt as {AGENT})",
                env!("CARGO_PKG_VERSION")
            ),
            step: Duration::from_secs(2),
            daily_max: None,
            bytes_max: 16 * 1024 * 1024,
            time_max: Duration::from_secs(30),
            exceptions: Vec::new(),
            folders: Vec::new(),
        }
    }
}

/// Fetches pages of the web and documents of local folders.
pub struct WebFetcher {
    client: reqwest::Client,
    names: GuardedNames,
    robots: RobotsCache,
    vault: Arc<FileVault>,
    browser: Option<Arc<dyn PageBrowser>>,
    reader: Arc<dyn DocumentReader>,
    settings: FetchSettings,
    clock: Clock,
}

impl WebFetcher {
    /// # Errors
    /// The TLS library could not start.
    pub fn new(
        settings: FetchSettings,
        names: Arc<dyn Names>,
        vault: Arc<FileVault>,
        browser: Option<Arc<dyn PageBrowser>>,
        reader: Arc<dyn DocumentReader>,
        clock: Clock,
    ) -> Result<Self, reqwest::Error> {
        let guard = Arc::new(AddressGuard::new(settings.exceptions.clone()));
        let names = GuardedNames::new(names, guard);
        let client = http::page_client(names.clone(), &settings.user_agent, settings.time_max)?;
        Ok(Self { client, names, robots: RobotsCache::default(), vault, browser, reader, settings, clock })
    }

    fn checked(&self, address: &str) -> Result<Url, FetchError> {
        let url = Url::parse(address).map_err(|_| FetchError::Refused("not an address".to_owned()))?;
        self.names.guard().check_url(&url).map_err(|refusal| FetchError::Refused(refusal.to_string()))?;
        Ok(url)
    }

    async fn wishes(&self, url: &Url) -> Wishes {
        let origin = url.origin().ascii_serialization();
        if let Some(known) = self.robots.get(&origin, self.clock.now()) {
            return known;
        }
        let wishes = self.ask_for_wishes(url).await;
        self.robots.put(&origin, self.clock.now(), wishes.clone());
        wishes
    }

    async fn ask_for_wishes(&self, url: &Url) -> Wishes {
        let Ok(mut at) = url.join("/robots.txt") else { return Wishes::Unknown };
        for _ in 0..ROBOTS_HOPS_MAX {
            if self.names.guard().check_url(&at).is_err() {
                return Wishes::Unknown;
            }
            let answer = match HttpReply::read(self.client.get(at.clone()), ROBOTS_BYTES_MAX).await {
                Ok(answer) => answer,
                // A file too large to be one has no rules that could be read.
                Err(FetchError::TooLarge) => return Wishes::None,
                Err(_) => return Wishes::Unknown,
            };
            let next = answer.header("location").filter(|_| is_redirect(answer.status)).and_then(|to| at.join(to).ok());
            match next {
                Some(next) => at = next,
                None => return Wishes::of_answer(AGENT, Some((answer.status, &answer.body))),
            }
        }
        Wishes::None
    }

    fn cookie_header(&self, request: &FetchRequest, url: &Url) -> Option<String> {
        let cookies = self.vault.for_host(&request.owner, url.host_str()?);
        cookies::header_for(&cookies, url, self.clock.now().as_millis() / 1_000)
    }

    async fn over_http(&self, request: &FetchRequest) -> Result<FetchOutcome, FetchError> {
        let url = self.checked(&request.url)?;
        let cookie = self.cookie_header(request, &url);
        let is_private = cookie.is_some();
        let mut ask = self.client.get(url.clone()).header("accept", ACCEPT);
        for (name, value) in
            [("cookie", &cookie), ("if-none-match", &request.etag), ("if-modified-since", &request.last_modified)]
        {
            if let Some(value) = value {
                ask = ask.header(name, value);
            }
        }
        let answer = HttpReply::read(ask, self.settings.bytes_max).await?;
        self.judge(answer, &url, is_private).await
    }

    /// What an answer amounts to.
    async fn judge(&self, answer: HttpReply, url: &Url, is_private: bool) -> Result<FetchOutcome, FetchError> {
        if answer.status == 304 {
            return Ok(FetchOutcome::NotModified);
        }
        if is_redirect(answer.status)
            && let Some(to) = answer.header("location").and_then(|to| url.join(to).ok())
        {
            return Ok(FetchOutcome::Redirect { to: to.to_string(), is_private });
        }
        let media_type = answer.header("content-type").unwrap_or("text/html").to_owned();
        let is_html = media_type.contains("html");
        let body = if is_html || answer.status >= 400 { String::from_utf8_lossy(&answer.body) } else { "".into() };
        let seen =
            walls::PageReply { status: answer.status, headers: &answer.headers, body: &body, final_url: url.as_str() };
        if let Some(auth_type) = walls::find_wall(&seen) {
            return Ok(FetchOutcome::NeedsAuth { auth_type });
        }
        match answer.status {
            200..=299 => {}
            429 => return Err(FetchError::RateLimited { retry_after: answer.retry_after() }),
            500..=599 => return Err(FetchError::Failed(format!("the server answered {}", answer.status))),
            status => return Err(FetchError::Status(status)),
        }
        if !is_readable(&media_type) {
            return Err(FetchError::Status(415));
        }
        if is_html && self.browser.is_some() && needs_scripts(&*self.reader, &body).await {
            return Ok(FetchOutcome::NeedsScripts);
        }
        drop(body);
        Ok(FetchOutcome::Page(Box::new(FetchedPage {
            url: url.to_string(),
            etag: answer.header("etag").map(str::to_owned),
            last_modified: answer.header("last-modified").map(str::to_owned),
            body: answer.body,
            media_type,
            origin: PageOrigin::Http,
            is_private,
            domain: None,
        })))
    }

    async fn over_browser(&self, request: &FetchRequest) -> Result<FetchOutcome, FetchError> {
        let url = self.checked(&request.url)?;
        let Some(browser) = &self.browser else {
            return Err(FetchError::Failed("no browser is installed".to_owned()));
        };
        let cookies: Vec<_> = match url.host_str() {
            Some(host) => self.vault.for_host(&request.owner, host),
            None => Vec::new(),
        };
        let now_s = self.clock.now().as_millis() / 1_000;
        let cookies: Vec<_> = cookies.into_iter().filter(|cookie| cookies::matches(cookie, &url, now_s)).collect();
        let is_private = !cookies.is_empty();
        let page = browser.visit(&url, &cookies).await?;
        let headers = [];
        let seen = walls::PageReply { status: page.status, headers: &headers, body: &page.html, final_url: &page.url };
        if let Some(auth_type) = walls::find_wall(&seen) {
            return Ok(FetchOutcome::NeedsAuth { auth_type });
        }
        match page.status {
            429 => return Err(FetchError::RateLimited { retry_after: None }),
            500..=599 => return Err(FetchError::Failed(format!("the server answered {}", page.status))),
            400..=499 => return Err(FetchError::Status(page.status)),
            _ => {}
        }
        Ok(FetchOutcome::Page(Box::new(FetchedPage {
            url: page.url,
            body: page.html.into_bytes(),
            media_type: "text/html; charset=utf-8".to_owned(),
            etag: None,
            last_modified: None,
            origin: PageOrigin::Browser,
            is_private,
            domain: None,
        })))
    }
}

const ACCEPT: &str = "text/html, application/xhtml+xml, application/pdf, text/markdown, text/plain;q=0.9, */*;q=0.1";

fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

fn is_readable(media_type: &str) -> bool {
    let kind = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind.starts_with("text/")
        || matches!(kind.as_str(), "application/xhtml+xml" | "application/pdf" | "application/xml")
}

#[async_trait]
impl Fetcher for WebFetcher {
    async fn clearance(&self, request: &FetchRequest) -> Result<Clearance, FetchError> {
        if request.url.starts_with("file:") {
            return Ok(Clearance { step: Duration::ZERO, daily_max: None });
        }
        let url = self.checked(&request.url)?;
        let wishes = self.wishes(&url).await;
        if !wishes.allow(url.as_str()) {
            return Err(FetchError::Robots);
        }
        let step = wishes.delay().unwrap_or_default().max(self.settings.step);
        Ok(Clearance { step, daily_max: self.settings.daily_max })
    }

    async fn fetch(&self, request: &FetchRequest, means: FetchMeans) -> Result<FetchOutcome, FetchError> {
        if request.url.starts_with("file:") {
            let (request, settings) = (request.clone(), self.settings.clone());
            let work = move || file::read(&request, &settings.folders, settings.bytes_max);
            let read = tokio::task::spawn_blocking(work).await;
            let page = read.map_err(|_| FetchError::Failed("reading a file was interrupted".to_owned()))??;
            return Ok(FetchOutcome::Page(Box::new(page)));
        }
        match means {
            FetchMeans::Http => self.over_http(request).await,
            FetchMeans::Browser => self.over_browser(request).await,
        }
    }

    fn has_browser(&self) -> bool {
        self.browser.is_some()
    }
}

#[cfg(test)]
mod tests;
