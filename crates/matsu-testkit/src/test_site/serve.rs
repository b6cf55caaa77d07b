//! The HTTP side. What is under which path:
//!
//! | path | what |
//! |---|---|
//! | `/LANG/TOPIC/N` | a page of the library; `/index` lists them |
//! | `/members/N`, `/login` | an article behind a login |
//! | `/shared/N` | with the key, a redirect to an article on another host |
//! | `/challenge/cloudflare`, `captcha`, `js` | a challenge |
//! | `/status/CODE`, `/slow/MS`, `/large/BYTES` | that status, that late, that much |
//! | `/robots.txt`, `/private-area/N` | a wish, and pages it is about |
//! | `/redirect/KIND` | `metadata`, `private`, `loopback`, `decimal`, `ipv6`, `file`, `loop`, `site`, or a number of hops |
//! | `/injection/KIND`, `/scripted`, `/copy/N`, `/etag/N`, `/pdf/N.pdf`, `/sjis` | what they say |
//! | `/searxng/search`, `/openalex/works` | the engines |

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Response};
use matsu_core::clock::Clock;
use tokio::sync::oneshot;

use super::engines::{self, Mood};
use super::journal::{Journal, Visit};
use super::library::{self, Page, frame};
use super::{guarded_pages, oddities};

const ROBOTS: &str = "User-agent: *\nDisallow: /private-area/\nAllow: /\n";
/// Japanese in the encoding of old: a page about queues.
const SJIS: &[u8] = b"<html><head><meta charset=\"Shift_JIS\"><title>\x91\xd2\x82\xbf\x8d\x73\x97\xf1</title></head><body><p>\x91\xd2\x82\xbf\x8d\x73\x97\xf1\x82\xcc\x92\xb7\x82\xb3\x82\xf0\x91\xaa\x82\xe9\x81\x42</p></body></html>";

/// What all sites share.
#[derive(Clone)]
pub struct SiteState {
    port: u16,
    journal: Arc<Journal>,
    moods: Arc<Mutex<BTreeMap<String, Mood>>>,
    clock: Clock,
}

impl SiteState {
    pub fn new(port: u16) -> Self {
        Self { port, journal: Arc::default(), moods: Arc::default(), clock: Clock::system() }
    }

    pub fn journal(&self) -> &Arc<Journal> {
        &self.journal
    }

    pub fn set_mood(&self, engine: &str, mood: Mood) {
        self.moods.lock().unwrap_or_else(PoisonError::into_inner).insert(engine.to_owned(), mood);
    }

    fn mood(&self, engine: &str) -> Mood {
        self.moods.lock().unwrap_or_else(PoisonError::into_inner).get(engine).copied().unwrap_or_default()
    }
}

#[derive(Clone)]
struct Site {
    number: u8,
    state: SiteState,
}

pub async fn serve(listeners: Vec<(u8, TcpListener)>, state: SiteState, stopped: oneshot::Receiver<()>) {
    let sites = listeners.into_iter().filter_map(|(number, listener)| {
        listener.set_nonblocking(true).ok()?;
        let listener = tokio::net::TcpListener::from_std(listener).ok()?;
        let router = Router::new().fallback(answer).with_state(Site { number, state: state.clone() });
        Some(axum::serve(listener, router).into_future())
    });
    let all = futures_util::future::join_all(sites);
    tokio::select! {
        _ = all => {}
        _ = stopped => {}
    }
}

async fn answer(State(site): State<Site>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    site.state.journal.record(Visit {
        site: site.number,
        path: head.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
        headers: readable(&head.headers),
        at: site.state.clock.now(),
    });
    let path = head.uri.path();
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match parts[..] {
        ["slow", millis] => {
            site.state.clock.sleep(Duration::from_millis(millis.parse().unwrap_or(0))).await;
            Html(Page { site: site.number, language: 0, topic: 0, number: 0 }.html()).into_response()
        }
        ["searxng", "search"] => engine(&site, "searxng", &head.uri).await,
        ["openalex", "works"] => engine(&site, "openalex", &head.uri).await,
        _ => page(&site, path, &parts, &head.headers),
    }
}

fn page(site: &Site, path: &str, parts: &[&str], headers: &HeaderMap) -> Response {
    let number = |text: &str| text.parse::<usize>().unwrap_or(0);
    match parts {
        [""] | ["index"] => Html(library::index(site.number)).into_response(),
        ["robots.txt"] => ([(header::CONTENT_TYPE, "text/plain")], ROBOTS).into_response(),
        ["private-area", _] => Html(frame("en", "Private", "<p>This page was not asked for.</p>")).into_response(),
        ["members", n] => guarded_pages::members(site.number, number(n), headers),
        ["shared", n] => guarded_pages::shared(number(n), site.state.port, headers),
        ["login"] => guarded_pages::login(),
        ["challenge", kind] => guarded_pages::challenge(kind),
        ["status", code] => guarded_pages::status(code.parse().unwrap_or(400)),
        ["redirect", kind] => oddities::redirect(kind, site.state.port),
        ["injection", kind] => {
            oddities::injection(site.number, kind).unwrap_or_else(|| StatusCode::NOT_FOUND.into_response())
        }
        ["scripted"] => oddities::scripted(site.state.port),
        ["etag", n] => oddities::conditional(site.number, number(n), headers),
        ["pdf", name] => oddities::pdf(site.number, number(name.trim_end_matches(".pdf"))),
        ["large", bytes] => oddities::large(number(bytes)),
        ["copy", _] => Html(Page { site: 0, language: 0, topic: 0, number: 0 }.html()).into_response(),
        ["sjis"] => ([(header::CONTENT_TYPE, "text/html")], SJIS).into_response(),
        _ => match Page::at(site.number, path) {
            Some(page) => Html(page.html()).into_response(),
            None => (StatusCode::NOT_FOUND, Html("<h1>Not found</h1>")).into_response(),
        },
    }
}

async fn engine(site: &Site, name: &str, uri: &Uri) -> Response {
    let mood = site.state.mood(name);
    if let Mood::Slow(millis) = mood {
        site.state.clock.sleep(Duration::from_millis(millis)).await;
    }
    if mood == Mood::BusyOnce {
        site.state.set_mood(name, Mood::Well);
    }
    if let Some(answer) = mood.answer() {
        return answer;
    }
    let asked = |key: &str| query_value(uri, key);
    let is_empty = mood == Mood::Empty;
    match name {
        "searxng" if asked("format").as_deref() != Some("json") => StatusCode::FORBIDDEN.into_response(),
        "searxng" => {
            engines::searxng(site.state.port, &asked("q").unwrap_or_default(), asked("language").as_deref(), mood)
        }
        _ => engines::openalex(site.state.port, &asked("search").unwrap_or_default(), is_empty),
    }
}

fn query_value(uri: &Uri, key: &str) -> Option<String> {
    let url = url::Url::parse(&format!("http://x{uri}")).ok()?;
    url.query_pairs().find(|(name, _)| name == key).map(|(_, value)| value.into_owned())
}

fn readable(headers: &HeaderMap) -> BTreeMap<String, String> {
    headers.iter().filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned()))).collect()
}
