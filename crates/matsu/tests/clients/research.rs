//! What research promises, one test each: the official Python SDK over stdio on the real binary, against a web on
//! loopback. What each does is the function of its name in `tests/clients/research.py`.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use matsu_testkit::test_site::TestSite;

use crate::home::Home;

/// A web, a home that may reach it, and a port for the engine that the script serves.
struct Lab {
    site: TestSite,
    home: Home,
    engine: u16,
}

impl Lab {
    fn new(settings: &[(&str, &str)]) -> Self {
        let site = TestSite::start().unwrap();
        // Free at this moment, and the system does not soon give out a port again.
        let engine = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut home = Home::new();
        let documents = home.folder().join("documents");
        std::fs::create_dir(&documents).unwrap();
        for n in 0..20 {
            let text =
                format!("# Waiting {n}\n\nWaiting number {n} in documents is cheap, as measured in case {}.\n", n * 37);
            std::fs::write(documents.join(format!("waiting-{n}.md")), text).unwrap();
        }
        home.set("MATSU_RESEARCH_SEARXNG", &format!("http://127.0.0.1:{engine}"));
        home.set("MATSU_RESEARCH_ALLOW_HOSTS", &site.hosts().join(","));
        home.set("MATSU_RESEARCH_FOLDERS", documents.to_str().unwrap());
        home.set("MATSU_RESEARCH_BROWSER", "off");
        if !settings.iter().any(|(variable, _)| *variable == "MATSU_RESEARCH_STEP_MS") {
            home.set("MATSU_RESEARCH_STEP_MS", "0");
        }
        for (variable, value) in settings {
            home.set(variable, value);
        }
        Self { site, home, engine }
    }

    /// Runs one function of the script against a daemon of this home.
    fn show(&self, behaviour: &str) {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let made = Command::new(root.join("scripts/clients.sh")).arg("python").output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let python = String::from_utf8(made.stdout).unwrap();
        let _daemon = self.home.serve();
        let output = Command::new(python.trim())
            .arg(root.join("tests/clients/research.py"))
            .arg(behaviour)
            .arg(self.home.data_dir())
            .arg(env!("CARGO_BIN_EXE_matsu"))
            .args([self.site.port().to_string(), self.engine.to_string()])
            .envs(self.home.settings())
            .env("MATSU_SERVER_PORT", "0")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(said.trim(), format!("ok: {behaviour}"));
    }
}

macro_rules! behaviours {
    ($($name:ident;)*) => {$(
        #[test]
        fn $name() {
            Lab::new(&[]).show(stringify!($name));
        }
    )*};
}

behaviours! {
    exactly_ten_tools_with_schemas;
    budgets_are_reported_and_enforced;
    a_hundred_searches_are_queued_at_once;
    ten_thousand_queued_searches_slow_no_call_down;
    bad_input_is_named_and_queues_nothing;
    one_id_names_a_search_everywhere;
    equal_queries_are_queued_once;
    priority_then_order_and_two_at_a_time;
    a_wait_wakes_when_something_changes;
    everyone_wakes_and_nothing_is_lost;
    an_idle_task_does_not_hold_its_caller;
    a_failure_reads_as_failed_and_work_goes_on;
    a_graceful_stop_keeps_what_runs;
    an_immediate_stop_ends_everything_of_its_task_alone;
    soft_cleanup_touches_nothing_of_others;
    orphans_go_and_nothing_else;
    a_claim_does_not_confirm_itself;
    three_sources_satisfy;
    materials_are_bounded_and_every_claim_resolves;
    three_hundred_and_thirty_three_claims_fit;
    five_searches_cost_few_calls_and_bytes;
    a_blocked_domain_stays_blocked;
    corrections_show_at_once;
    a_page_that_needs_a_login_is_one_item;
    calibration_is_measured_and_can_be_undone;
    a_side_that_is_down_leaves_the_rest_responsive;
    the_whole_way_and_a_soak;
    local_search_finds_words_of_two_letters;
}

#[test]
fn a_killed_daemon_costs_nothing() {
    let lab = Lab::new(&[]);
    lab.show("a_killed_daemon_costs_nothing");
    for page in 0..3_u8 {
        let visits = lab.site.visits_to("/en/").into_iter().filter(|visit| visit.site == page).count();
        assert_eq!(visits, 1, "what was stored before is not asked for again: site {page}");
    }
    let under_way = lab.site.visits_to("/slow/").len();
    assert!((2..=4).contains(&under_way), "only what was under way is asked for twice: {under_way}");
}

#[test]
fn a_budget_of_five_pages_is_five_pages() {
    let lab = Lab::new(&[]);
    lab.show("a_budget_of_five_pages_is_five_pages");
    assert_eq!(lab.site.visits_to("/en/").len(), 5, "as the sites themselves have counted");
}

#[test]
fn sites_are_asked_politely() {
    let lab = Lab::new(&[("MATSU_RESEARCH_STEP_MS", "400")]);
    lab.show("sites_are_asked_politely");
    let visits = lab.site.visits_to("/en/");
    let mut times: Vec<i64> = visits.iter().filter(|visit| visit.site == 0).map(|visit| visit.at.as_millis()).collect();
    times.sort_unstable();
    assert_eq!(times.len(), 6);
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= 400), "{times:?}");
    assert!(lab.site.visits_to("/private-area").is_empty(), "robots.txt is obeyed");
    assert!(
        visits.iter().all(|visit| visit.headers.get("user-agent").is_some_and(|agent| agent.starts_with("Matsu/")))
    );
}

#[test]
fn a_site_has_its_share_of_a_day() {
    let lab = Lab::new(&[("MATSU_RESEARCH_STEP_MS", "1"), ("MATSU_RESEARCH_DAILY_MAX", "3")]);
    lab.show("a_site_has_its_share_of_a_day");
    let visits = lab.site.visits_to("/en/");
    assert_eq!(visits.iter().filter(|visit| visit.site == 0).count(), 3, "over both workers: {visits:?}");
}

#[test]
fn a_finished_login_lets_its_searches_go_on() {
    let lab = Lab::new(&[("MATSU_RESEARCH_AUTH_KEPT", "12")]);
    lab.show("a_finished_login_lets_its_searches_go_on");
    let with_key = lab.site.visits().into_iter().filter(|visit| visit.headers.contains_key("cookie"));
    assert!(with_key.clone().count() > 0 && with_key.clone().all(|visit| visit.site == 0), "for matching hosts alone");
}

#[test]
fn pages_that_give_orders_are_data() {
    let lab = Lab::new(&[]);
    lab.show("pages_that_give_orders_are_data");
    assert_eq!(lab.site.leaks().len(), 0, "no link of a page is followed");
}

#[test]
fn a_browser_reaches_nothing_inside() {
    let lab = Lab::new(&[("MATSU_RESEARCH_BROWSER", "auto")]);
    if !["chromium", "chromium-browser", "google-chrome"].iter().any(|name| Path::new("/usr/bin").join(name).exists()) {
        return;
    }
    lab.show("a_browser_reaches_nothing_inside");
    assert!(lab.site.visits_to("/scripted").len() >= 2, "read plainly, and then in a browser");
    assert_eq!(lab.site.leaks().len(), 0, "{:?}", lab.site.leaks());
}

#[test]
fn a_model_that_is_down_fails_visibly_and_slows_no_other_search() {
    let away = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let lab = Lab::new(&[("MATSU_RESEARCH_MODEL", "away")]);
    let provider =
        format!("[providers.away]\nwire = \"openai_chat\"\nmodel = \"m\"\nbase_url = \"http://{away}/v1\"\n");
    let folder = lab.home.folder().join(".config/matsu");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), provider).unwrap();
    lab.show("a_model_that_is_down_fails_visibly_and_slows_no_other_search");
}

#[test]
fn errors_are_for_the_reader() {
    let lab = Lab::new(&[]);
    lab.show("errors_are_for_the_reader");
}
