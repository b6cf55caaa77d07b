//! The fetcher against the test site: politeness, logins, and what must never be reached.

use std::net::IpAddr;
use std::sync::Mutex;

use matsu_core::ports::cookie_vault::CookieVault;
use matsu_core::principal::Principal;
use matsu_core::research::auth::AuthType;
use matsu_testkit::test_site::{KEY, TestSite};

use super::*;
use crate::http::names::SystemNames;
use crate::reading::in_process::InProcess;

struct Scene {
    site: TestSite,
    vault: Arc<FileVault>,
    fetcher: WebFetcher,
    home: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        Self::with_names(Arc::new(SystemNames))
    }

    fn with_names(names: Arc<dyn Names>) -> Self {
        let site = TestSite::start().expect("a site");
        let home = tempfile::tempdir().expect("a folder");
        let vault = Arc::new(FileVault::new(home.path().join("cookies.json"), None));
        let settings = FetchSettings {
            exceptions: site.hosts().iter().filter_map(|host| Exception::parse(host)).collect(),
            bytes_max: 1024 * 1024,
            time_max: Duration::from_secs(5),
            ..FetchSettings::default()
        };
        let fetcher = WebFetcher::new(settings, names, Arc::clone(&vault), None, Arc::new(InProcess), Clock::system())
            .expect("a fetcher");
        Self { site, vault, fetcher, home }
    }

    fn request(&self, path: &str) -> FetchRequest {
        let url = if path.starts_with('/') { self.site.url(0, path) } else { path.to_owned() };
        FetchRequest {
            url,
            engines: Vec::new(),
            owner: Principal::user("ann"),
            folders: Vec::new(),
            etag: None,
            last_modified: None,
        }
    }

    async fn fetch(&self, path: &str) -> Result<FetchOutcome, FetchError> {
        self.fetcher.fetch(&self.request(path), FetchMeans::Http).await
    }
}

#[tokio::test]
async fn a_page_comes_with_a_clear_name_and_may_be_unchanged() {
    let scene = Scene::new();
    let Ok(FetchOutcome::Page(page)) = scene.fetch("/etag/1").await else { panic!("no page") };
    assert!(!page.is_private && page.media_type.starts_with("text/html"));
    assert_eq!(page.etag.as_deref(), Some("\"v1\""));
    let visit = scene.site.visits_to("/etag/1").pop().expect("a visit");
    assert!(visit.headers["user-agent"].starts_with("Matsu/"), "{:?}", visit.headers);
    let again = FetchRequest { etag: page.etag, last_modified: page.last_modified, ..scene.request("/etag/1") };
    assert!(matches!(scene.fetcher.fetch(&again, FetchMeans::Http).await, Ok(FetchOutcome::NotModified)));
}

#[tokio::test]
async fn answers_are_classified() {
    let scene = Scene::new();
    for (path, expected) in [
        ("/status/404", FetchError::Status(404)),
        ("/status/429", FetchError::RateLimited { retry_after: Some(Duration::from_secs(7)) }),
        ("/status/500", FetchError::Failed("the server answered 500".to_owned())),
        ("/large/2000000", FetchError::TooLarge),
    ] {
        assert_eq!(scene.fetch(path).await.err(), Some(expected), "{path}");
    }
    for (path, expected) in [
        ("/members/0", AuthType::Login),
        ("/login", AuthType::Login),
        ("/status/403", AuthType::Forbidden),
        ("/challenge/cloudflare", AuthType::Cloudflare),
        ("/challenge/captcha", AuthType::Captcha),
        ("/challenge/js", AuthType::JsChallenge),
    ] {
        let found = scene.fetch(path).await;
        assert!(
            matches!(found, Ok(FetchOutcome::NeedsAuth { auth_type }) if auth_type == expected),
            "{path}: {found:?}"
        );
    }
}

#[tokio::test]
async fn robots_txt_is_read_once_and_obeyed() {
    let scene = Scene::new();
    let blocked = scene.fetcher.clearance(&scene.request("/private-area/1")).await;
    assert_eq!(blocked, Err(FetchError::Robots));
    let open = scene.fetcher.clearance(&scene.request("/en/green-tea/1")).await.expect("clearance");
    assert_eq!(open.step, FetchSettings::default().step);
    assert_eq!(scene.site.visits_to("/robots.txt").len(), 1);
    assert_eq!(scene.site.visits_to("/private-area").len(), 0);
}

#[tokio::test]
async fn no_hop_leads_inside() {
    let scene = Scene::new();
    for kind in ["metadata", "private", "loopback", "decimal", "ipv6", "file"] {
        let Ok(FetchOutcome::Redirect { to, .. }) = scene.fetch(&format!("/redirect/{kind}")).await else {
            panic!("{kind}")
        };
        let request = scene.request(&to);
        let cleared = scene.fetcher.clearance(&request).await;
        let fetched = scene.fetcher.fetch(&request, FetchMeans::Http).await;
        assert!(matches!(fetched, Err(FetchError::Refused(_))), "{kind}: {fetched:?}");
        assert!(kind == "file" || matches!(cleared, Err(FetchError::Refused(_))), "{kind}: {cleared:?}");
    }
    assert_eq!(scene.site.leaks().len(), 0);
    let Ok(FetchOutcome::Redirect { to, .. }) = scene.fetch("/redirect/site").await else { panic!("no redirect") };
    assert!(matches!(scene.fetch(&to).await, Ok(FetchOutcome::Page(_))));
}

/// A resolver that answers with a public address first and with loopback from then on.
struct Rebinding {
    asked: Mutex<u32>,
}

#[async_trait]
impl Names for Rebinding {
    async fn look_up(&self, _: &str) -> std::io::Result<Vec<IpAddr>> {
        let mut asked = self.asked.lock().expect("a lock");
        *asked += 1;
        Ok(vec![if *asked == 1 { [192, 0, 9, 1].into() } else { [127, 0, 0, 1].into() }])
    }
}

#[tokio::test]
async fn a_name_that_turns_to_loopback_is_refused() {
    let names = Arc::new(Rebinding { asked: Mutex::new(1) });
    let scene = Scene::with_names(names);
    let url = format!("http://rebind.example:{}/en/green-tea/1", scene.site.port());
    let fetched = scene.fetch(&url).await;
    assert!(matches!(fetched, Err(FetchError::Refused(_))), "{fetched:?}");
    assert!(scene.site.visits().is_empty());
}

#[tokio::test]
async fn cookies_go_to_their_owner_s_requests_and_make_pages_private() {
    let scene = Scene::new();
    scene.vault.keep(&Principal::user("ann"), "127.0.0.1", KEY).await.expect("kept");
    let Ok(FetchOutcome::Page(page)) = scene.fetch("/members/0").await else { panic!("no page") };
    assert!(page.is_private);
    let other_user = FetchRequest { owner: Principal::user("bob"), ..scene.request("/members/0") };
    let refused = scene.fetcher.fetch(&other_user, FetchMeans::Http).await;
    assert!(matches!(refused, Ok(FetchOutcome::NeedsAuth { .. })));
    let elsewhere = FetchRequest { url: scene.site.url(1, "/members/0"), ..scene.request("/") };
    assert!(matches!(scene.fetcher.fetch(&elsewhere, FetchMeans::Http).await, Ok(FetchOutcome::NeedsAuth { .. })));
    assert!(
        scene
            .site
            .visits_to("/members")
            .iter()
            .filter(|visit| visit.headers.contains_key("cookie"))
            .all(|visit| visit.site == 0)
    );
}

/// The second host gets no cookie, and its address works for every client that has it.
#[tokio::test]
async fn a_redirect_that_took_cookies_says_so() {
    let scene = Scene::new();
    scene.vault.keep(&Principal::user("ann"), "127.0.0.1", KEY).await.expect("kept");
    let Ok(FetchOutcome::Redirect { to, is_private }) = scene.fetch("/shared/1").await else { panic!("no redirect") };
    assert!(is_private && to.starts_with("http://127.0.0.2:"), "{to}");
    let Ok(FetchOutcome::Page(page)) = scene.fetch(&to).await else { panic!("no page") };
    assert!(!page.is_private);
    let Ok(FetchOutcome::Redirect { is_private, .. }) = scene.fetch("/redirect/site").await else { panic!("none") };
    assert!(is_private, "cookies of a host go to all its addresses");
    let bob = FetchRequest { owner: Principal::user("bob"), ..scene.request("/redirect/site") };
    let bobs = scene.fetcher.fetch(&bob, FetchMeans::Http).await;
    assert!(matches!(bobs, Ok(FetchOutcome::Redirect { is_private: false, .. })), "{bobs:?}");
}

#[tokio::test]
async fn files_are_read_inside_the_folders_of_a_search_alone() {
    let scene = Scene::new();
    let (inside, outside) = (scene.home.path().join("docs"), scene.home.path().join("secret.md"));
    std::fs::create_dir(&inside).expect("a folder");
    std::fs::write(inside.join("a.md"), "# A\nText.").expect("a file");
    std::fs::write(&outside, "secret").expect("a file");
    std::os::unix::fs::symlink(&outside, inside.join("link.md")).expect("a link");
    let ask = |name: &str, engines: &[&str]| FetchRequest {
        url: url::Url::from_file_path(inside.join(name)).expect("a path").to_string(),
        engines: engines.iter().map(|engine| (*engine).to_owned()).collect(),
        folders: vec![inside.to_string_lossy().into_owned()],
        owner: Principal::local_user(),
        ..scene.request("/")
    };
    let fetch = async |request: FetchRequest| scene.fetcher.fetch(&request, FetchMeans::Http).await;
    let Ok(FetchOutcome::Page(page)) = fetch(ask("a.md", &["local"])).await else { panic!("no page") };
    assert!(page.is_private && page.domain.as_deref() == Some("local:docs/a.md") && page.media_type == "text/markdown");
    assert!(matches!(fetch(ask("a.md", &["searxng"])).await, Err(FetchError::Refused(_))));
    assert!(matches!(fetch(ask("link.md", &["local"])).await, Err(FetchError::Refused(_))));
    assert!(matches!(fetch(ask("../secret.md", &["local"])).await, Err(FetchError::Refused(_))));
    assert_eq!(fetch(ask("gone.md", &["local"])).await.err(), Some(FetchError::Status(404)));
    let other_user = FetchRequest { owner: Principal::user("ann"), folders: Vec::new(), ..ask("a.md", &["local"]) };
    assert!(matches!(fetch(other_user).await, Err(FetchError::Refused(_))), "another user reads what its task names");
}
