//! A real browser on the test site, where one is installed. Scripts run; what is inside is not reached.

use std::sync::Arc;

use matsu_testkit::test_site::{KEY, TestSite};

use super::*;
use crate::fetch::cookies;
use crate::http::guard::{AddressGuard, Exception};
use crate::http::names::SystemNames;

/// `None` where no browser is installed: there is nothing to show then.
fn chromium(site: &TestSite) -> Option<Chromium> {
    let program = find_program("/usr/bin:/usr/local/bin:/opt/google/chrome:/snap/bin")?;
    let exceptions = site.hosts().iter().filter_map(|host| Exception::parse(host)).collect();
    let names = GuardedNames::new(Arc::new(SystemNames), Arc::new(AddressGuard::new(exceptions)));
    Some(Chromium::new(program, names, "Matsu/test".to_owned(), Clock::system()))
}

fn url(text: &str) -> Url {
    Url::parse(text).expect("a URL")
}

#[tokio::test]
async fn scripts_run_and_reach_nothing_inside() {
    let site = TestSite::start().expect("a site");
    let Some(browser) = chromium(&site) else { return };
    let page = browser.visit(&url(&site.url(0, "/scripted")), &[]).await.expect("a page");
    assert_eq!(page.status, 200);
    assert!(page.html.contains("Made by a script"), "{}", page.html);
    let visits = site.visits();
    assert!(visits.iter().all(|visit| visit.site == 0 && visit.headers["user-agent"] == "Matsu/test"), "{visits:?}");
    assert_eq!(site.leaks().len(), 0, "{:?}", site.leaks());
}

#[tokio::test]
async fn no_address_inside_is_opened_and_no_redirect_leads_there() {
    let site = TestSite::start().expect("a site");
    let Some(browser) = chromium(&site) else { return };
    for path in ["loopback", "metadata", "private", "decimal", "ipv6"].map(|kind| format!("/redirect/{kind}")) {
        let path = path.as_str();
        let visited = browser.visit(&url(&site.url(0, path)), &[]).await;
        assert!(matches!(visited, Err(FetchError::Refused(_))), "{path}: {visited:?}");
    }
    let direct = browser.visit(&url(&format!("http://127.0.0.99:{}/", site.port())), &[]).await;
    assert!(matches!(direct, Err(FetchError::Refused(_))), "{direct:?}");
    assert_eq!(site.leaks().len(), 0, "{:?}", site.leaks());
}

#[tokio::test]
async fn cookies_hold_for_one_visit() {
    let site = TestSite::start().expect("a site");
    let Some(browser) = chromium(&site) else { return };
    let members = url(&site.url(0, "/members/0"));
    let cookies = cookies::parse("127.0.0.1", KEY).expect("a cookie");
    let page = browser.visit(&members, &cookies).await.expect("a page");
    assert!(page.html.contains("Only members read this"));
    let next = browser.visit(&members, &[]).await.expect("an answer");
    assert_eq!((next.status, next.url.as_str()), (401, members.as_str()));
}
