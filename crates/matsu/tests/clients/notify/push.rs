//! Push to browsers: what a push service gets, browsers that are gone or cannot be reached, and addresses that are not
//! pushed to. That a browser can read it is shown by the page's own tests (`ui/test/journeys/push.test.mjs`).

use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::receiver::{Receiver, free_address};
use super::{SOON, home_with, start};
use crate::home::{Daemon, until};

/// Keys of the example in RFC 8291.
fn browser(endpoint: &str) -> Value {
    json!({
        "endpoint": endpoint,
        "keys": {
            "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
            "auth": "BTBZMqHH6r4Tts7J_aSIgg",
        },
    })
}

fn known(daemon: &Daemon) -> Vec<String> {
    let read = daemon.http().rest("GET", "/push", &Value::Null).json();
    let all = read["items"].as_array().unwrap_or_else(|| panic!("{read}"));
    all.iter().map(|one| one["subscription_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_browser_gets_a_message_once_and_one_that_is_gone_is_forgotten() {
    let away = AtomicUsize::new(1);
    let receiver = Receiver::answering(
        free_address(),
        move |got| match got.path.as_str() {
            "/gone" => 410,
            "/away" if away.swap(0, Ordering::SeqCst) == 1 => 503,
            _ => 201,
        },
        |_| Some(String::new()),
    );
    let address = receiver.address;
    let home = home_with(&format!(
        "[notify.browsers]\nkind = \"push\"\nallow_hosts = \"{address}\"\ncontact = \"mailto:me@example.org\"\n"
    ));
    let daemon = home.serve();
    let http = daemon.http();
    let tried = home.command(&["notify", "test", "--json"]).output().unwrap();
    let tried = String::from_utf8(tried.stdout).unwrap();
    assert!(tried.contains("no browser has subscribed"), "{tried}");
    let key = http.rest("GET", "/push", &Value::Null).json();
    assert_eq!((&key["channel"], key["public_key"].as_str().unwrap().len()), (&json!("browsers"), 87), "{key}");
    let mode = std::fs::metadata(home.data_dir().join("push-key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    for path in ["here", "away", "gone"] {
        let made = http.rest("POST", "/push", &browser(&format!("http://{address}/{path}")));
        assert_eq!(made.status, 201, "{made:?}");
        assert!(!made.body.contains(path), "the address is not shown: {made:?}");
    }
    assert_eq!(known(&daemon).len(), 3);

    let task = start(&daemon, "script", "echo the result");
    let mut got: Vec<_> = (0..4).map(|_| receiver.next(SOON)).collect();
    got.sort_by(|one, other| one.path.cmp(&other.path));
    let paths: Vec<&str> = got.iter().map(|got| got.path.as_str()).collect();
    assert_eq!(paths, ["/away", "/away", "/gone", "/here"], "only what did not arrive was sent again");
    for got in &got {
        assert_eq!((got.header("content-encoding"), got.header("urgency")), ("aes128gcm", "normal"));
        assert!(got.header("ttl").parse::<u64>().unwrap() > 3_600);
        assert_eq!(got.header("topic").len(), 32);
        assert!(got.header("authorization").starts_with("vapid t=ey"), "{got:?}");
        assert!(!got.body.contains(&task) && !got.body.contains("echo"), "it is encrypted");
    }
    assert_eq!(got[0].header("topic"), got[1].header("topic"), "a repetition takes the place of the first");
    until("the one that is gone is forgotten", SOON, || (known(&daemon).len() == 2).then_some(()));

    // As when a person signs a lost phone out: what it subscribed goes with its session.
    let phone = http.rest("POST", "/tokens", &json!({ "name": "phone" })).json();
    let mut signed_in = http.clone();
    signed_in.token = phone["secret"].as_str().unwrap().to_owned();
    assert_eq!(signed_in.rest("POST", "/push", &browser(&format!("http://{address}/phone"))).status, 201);
    assert_eq!(known(&daemon).len(), 3);
    let id = phone["token"]["id"].as_str().unwrap();
    assert!(http.rest("DELETE", &format!("/tokens/{id}"), &Value::Null).status < 300);
    let left = known(&daemon);
    assert_eq!(left.len(), 2);
    let removed = http.rest("DELETE", &format!("/push/{}", left[0]), &Value::Null);
    assert_eq!((removed.status, known(&daemon).len()), (204, 1));
    start(&daemon, "script", "echo again");
    assert_eq!(receiver.next(SOON).path, "/away", "the one that is left");
}

#[test]
fn addresses_inside_and_keys_of_no_browser_are_refused() {
    let home = home_with("[notify.browsers]\nkind = \"push\"\nallow_hosts = \"127.0.0.1:9\"\n");
    let daemon = home.serve();
    for (endpoint, why) in [
        ("http://169.254.169.254/latest", "not a public address"),
        ("https://[::1]/x", "not a public address"),
        ("http://127.0.0.1:10/x", "allowed at port 9 only"),
        ("file:///etc/passwd", "only http and https"),
        ("http://push.example.org/x", "expected https:"),
        ("https://user:word@push.example.org/x", "user name or password"),
        ("not an address", "not an address"),
    ] {
        let refused = daemon.http().rest("POST", "/push", &browser(endpoint));
        assert!(refused.status == 400 && refused.body.contains(why), "{endpoint}: {refused:?}");
    }
    let mut bad = browser("https://push.example.org/x");
    bad["keys"]["auth"] = json!("abc");
    let refused = daemon.http().rest("POST", "/push", &bad);
    assert!(refused.status == 400 && refused.body.contains("auth has 2 bytes; expected 16"), "{refused:?}");
    assert_eq!(known(&daemon), [] as [String; 0]);
}

#[test]
fn without_a_channel_a_refusal_says_what_to_configure() {
    let home = home_with("");
    let daemon = home.serve();
    let read = daemon.http().rest("GET", "/push", &Value::Null).json();
    assert_eq!((&read["channel"], &read["public_key"]), (&Value::Null, &Value::Null), "{read}");
    let refused = daemon.http().rest("POST", "/push", &browser("https://push.example.org/x"));
    assert!(refused.status == 400 && refused.body.contains("[notify.NAME]"), "{refused:?}");
    assert!(!home.data_dir().join("push-key").exists(), "no key is made for nothing");
}
