//! Chromium, for pages that are nothing without their scripts. Every visit has a browser of its own with an empty
//! profile, so nothing of one owner is ever there for another; it reaches the network through [`proxy`] alone, and it
//! is gone when the visit is.

pub mod frames;
mod process;
pub mod protocol;
pub mod proxy;
pub mod running;

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use matsu_core::clock::Clock;
use matsu_core::ports::fetcher::FetchError;
use serde_json::{Value, json};
use url::Url;

use crate::fetch::cookies::Cookie;
use crate::fetch::web::{PageBrowser, Visited};
use crate::http::names::GuardedNames;
use process::Process;
use protocol::BrowserPage;
use proxy::Proxy;

/// One visit takes no longer.
const VISIT_MAX: Duration = Duration::from_secs(30);
/// A page counts as done when it has not changed for this long, and is read as it is after the longer time.
const STILL_MS: u32 = 400;
const STILL_MAX_MS: u32 = 6_000;
/// Characters of a page that are taken.
const HTML_CHARS_MAX: u32 = 8_000_000;

/// The browser's error for an answer that is an error without a body.
const EMPTY_ANSWER: &str = "net::ERR_HTTP_RESPONSE_CODE_FAILURE";
/// What it reports for a 401 that asks for a name and a password, because no person is there to give them.
const ASKS_WHO_IT_IS: &str = "net::ERR_INVALID_AUTH_CREDENTIALS";

/// Names under which a browser may be installed, best first.
const PROGRAMS: [&str; 5] = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome"];

/// The program of an installed browser, by the folders of a search path.
#[must_use]
pub fn find_program(search_path: &str) -> Option<PathBuf> {
    let folders: Vec<&Path> = search_path.split(':').filter(|folder| !folder.is_empty()).map(Path::new).collect();
    PROGRAMS.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name))).find(|path| path.is_file())
}

/// Visits pages with Chromium.
pub struct Chromium {
    program: PathBuf,
    names: GuardedNames,
    user_agent: String,
    clock: Clock,
}

impl Chromium {
    #[must_use]
    pub fn new(program: PathBuf, names: GuardedNames, user_agent: String, clock: Clock) -> Self {
        Self { program, names, user_agent, clock }
    }

    async fn visit_now(&self, url: &Url, cookies: &[Cookie]) -> Result<Visited, FetchError> {
        let proxy = Proxy::start(self.names.clone()).await.map_err(failed)?;
        let visit = async {
            let (_process, input, output) = Process::start(&self.program, proxy.port()).map_err(failed)?;
            let mut session = BrowserPage::open(input, output).await?;
            self.prepare(&mut session, url, cookies).await?;
            let visited = read(&mut session, url).await;
            // The proxy answers for a host that is refused, and the browser takes that for the page's own answer.
            let shown = visited.as_ref().ok().map(|page| page.url.as_str());
            let mut hosts =
                [Some(url.as_str()), session.document_url(), shown].into_iter().flatten().filter_map(host_of);
            let refused = hosts.find(|host| proxy.has_refused(host));
            drop(hosts);
            match refused {
                Some(host) => Err(FetchError::Refused(format!("{host} is not a public address"))),
                None => visited,
            }
        };
        // The proxy runs as long as the visit does, and ends with it.
        tokio::select! {
            visited = visit => visited,
            () = proxy.run() => Err(FetchError::Failed("the proxy of the browser ended".to_owned())),
        }
    }

    async fn prepare(&self, session: &mut BrowserPage, url: &Url, cookies: &[Cookie]) -> Result<(), FetchError> {
        session.ask("Network.enable", json!({})).await?;
        session.ask("Page.enable", json!({})).await?;
        session.ask("Network.setUserAgentOverride", json!({"userAgent": self.user_agent})).await?;
        if !cookies.is_empty() {
            let cookies: Vec<Value> = cookies.iter().map(|cookie| cookie_json(cookie, url)).collect();
            session.ask("Network.setCookies", json!({"cookies": cookies})).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl PageBrowser for Chromium {
    async fn visit(&self, url: &Url, cookies: &[Cookie]) -> Result<Visited, FetchError> {
        let visited = self.clock.within(VISIT_MAX, self.visit_now(url, cookies)).await;
        visited.unwrap_or_else(|| Err(FetchError::Failed("the browser took too long to load the page".to_owned())))
    }
}

fn host_of(address: &str) -> Option<String> {
    Url::parse(address).ok()?.host_str().map(str::to_owned)
}

fn failed(error: std::io::Error) -> FetchError {
    FetchError::Failed(format!("the browser: {}", error.kind()))
}

fn cookie_json(cookie: &Cookie, url: &Url) -> Value {
    let mut value =
        json!({"name": cookie.name, "value": cookie.value, "path": cookie.path, "secure": cookie.is_secure});
    // A cookie without a domain goes to the host of its address alone.
    if cookie.with_subdomains {
        value["domain"] = json!(format!(".{}", cookie.domain));
    } else {
        value["url"] = json!(format!("{}://{}{}", url.scheme(), cookie.domain, cookie.path));
    }
    value
}

/// Resolves once the page has been still for a while.
fn still() -> String {
    format!(
        "new Promise(done => {{ let timer; const end = () => {{ watch.disconnect(); done(1); }}; \
         const again = () => {{ clearTimeout(timer); timer = setTimeout(end, {STILL_MS}); }}; \
         const watch = new MutationObserver(again); \
         watch.observe(document, {{subtree: true, childList: true, characterData: true}}); \
         setTimeout(end, {STILL_MAX_MS}); again(); }})"
    )
}

async fn read(session: &mut BrowserPage, url: &Url) -> Result<Visited, FetchError> {
    let started = session.ask("Page.navigate", json!({"url": url.as_str()})).await?;
    if let Some(reason) = started["errorText"].as_str() {
        // A browser calls it a failure when an answer is an error without a body; it is an answer like any other.
        let status = match reason {
            EMPTY_ANSWER => session.document_status(),
            ASKS_WHO_IT_IS => Some(401),
            _ => None,
        };
        if let Some(status) = status {
            let url = session.document_url().unwrap_or(url.as_str()).to_owned();
            return Ok(Visited { url, status, html: String::new() });
        }
        return Err(FetchError::Failed(format!("the browser could not open the page: {reason}")));
    }
    session.wait_for("Page.loadEventFired").await?;
    session.evaluate(&still()).await?;
    let html = session.evaluate(&format!("document.documentElement.outerHTML.slice(0, {HTML_CHARS_MAX})")).await?;
    let at = session.evaluate("location.href").await?;
    Ok(Visited {
        url: at.as_str().unwrap_or(url.as_str()).to_owned(),
        status: session.document_status().unwrap_or(200),
        html: html.as_str().unwrap_or_default().to_owned(),
    })
}

#[cfg(test)]
mod tests;
