//! A login that has grown old: the program renews it, and what it writes lands in the user's own file.
//!
//! The programs know their vendors' addresses only, so a proxy on loopback plays the vendors.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use matsu_testkit::model_server::{ModelServer, Reply};
use serde_json::{Value, json};

use super::cases::{Case, OPENCODE};
use super::five::{Bed, for_each_of};

/// Claims that ran out in 1970, and claims that last until 2100; without a valid signature.
const OLD: &str = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.eyJleHAiOjEwMDAsImh0dHBzOi8vYXBpLm9wZW5haS5jb20vYXV0aCI6eyJjaGF0Z3B0X3BsYW5fdHlwZSI6InBsdXMiLCJjaGF0Z3B0X2FjY291bnRfaWQiOiJhY2MifX0.c2ln";
const NEW: &str = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.eyJleHAiOjQxMDI0NDQ4MDAsImh0dHBzOi8vYXBpLm9wZW5haS5jb20vYXV0aCI6eyJjaGF0Z3B0X3BsYW5fdHlwZSI6InBsdXMiLCJjaGF0Z3B0X2FjY291bnRfaWQiOiJhY2MifX0.c2ln";

/// One program's login: the file, its content when it is old, and where the new token is in it.
struct Renewal {
    name: &'static str,
    file: &'static str,
    old: fn() -> Value,
    access: &'static str,
}

const RENEWALS: &[Renewal] = &[
    Renewal {
        name: "claude",
        file: ".claude/.credentials.json",
        old: || {
            json!({ "claudeAiOauth": { "accessToken": OLD, "refreshToken": "old", "expiresAt": 1_000,
                "scopes": ["user:inference", "user:profile"], "subscriptionType": "max" } })
        },
        access: "/claudeAiOauth/accessToken",
    },
    Renewal {
        name: "codex",
        file: ".codex/auth.json",
        old: || {
            let tokens = json!({ "id_token": OLD, "access_token": OLD, "refresh_token": "old", "account_id": "acc" });
            json!({ "auth_mode": "chatgpt", "OPENAI_API_KEY": null, "tokens": tokens,
                "last_refresh": "2025-01-01T00:00:00Z" })
        },
        access: "/tokens/access_token",
    },
    Renewal {
        name: "gemini",
        file: ".gemini/oauth_creds.json",
        old: || {
            json!({ "access_token": OLD, "refresh_token": "old", "scope": "x", "token_type": "Bearer",
                "id_token": OLD, "expiry_date": 1_000 })
        },
        access: "/access_token",
    },
    Renewal {
        name: "opencode",
        file: ".local/share/opencode/auth.json",
        old: || json!({ "openai": { "type": "oauth", "refresh": "old", "access": OLD, "expires": 1_000, "accountId": "acc" } }),
        access: "/openai/access",
    },
];

/// With a model of the vendor whose login it has.
const OPENCODE_OAUTH: Case = Case {
    logged_in: Some(|_| {
        "[files.\"opencode.json\"]\nenabled_providers = [\"openai\"]\nmodel = \"openai/m\"\nsmall_model = \"openai/m\"\n\
         [files.\"opencode.json\".provider.openai]\nnpm = \"@ai-sdk/openai\"\n\
         models = { m = { name = \"m\", limit = { context = 200000, output = 8192 } } }\n"
            .to_owned()
    }),
    ..OPENCODE
};

/// The vendors' servers, for as long as this lives.
struct Vendors {
    child: Child,
    folder: tempfile::TempDir,
    port: String,
    _model: ModelServer,
}

impl Vendors {
    fn start() -> Self {
        use std::os::unix::fs::PermissionsExt;
        let model = ModelServer::with(Box::new(|_| Reply::text("logged in"))).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/agents/token_server.py");
        let mut command = Command::new("python3");
        command.arg(script).arg(folder.path()).args([NEW, &model.url()]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { child, folder, port: port.trim().to_owned(), _model: model }
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("HTTPS_PROXY", format!("http://127.0.0.1:{}", self.port)),
            ("NO_PROXY", "127.0.0.1,localhost".to_owned()),
            ("NODE_EXTRA_CA_CERTS", self.folder.path().join("ca.pem").display().to_string()),
            ("SSL_CERT_FILE", self.folder.path().join("ca.pem").display().to_string()),
        ]
    }

    /// Whether a request other than one for a token carried the new one.
    fn were_shown(&self, token: &str) -> bool {
        let log = std::fs::read_to_string(self.folder.path().join("requests.log")).unwrap_or_default();
        log.lines().any(|line| line.contains(&format!("Bearer {token}")))
    }
}

impl Drop for Vendors {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("{}", std::fs::read_to_string(self.folder.path().join("requests.log")).unwrap_or_default());
        }
    }
}

#[test]
fn a_login_that_is_renewed_is_renewed_where_it_lies() {
    for_each_of(
        "a renewed login is written to the user's file",
        |case| RENEWALS.iter().any(|renewal| renewal.name == case.name),
        |case, place| {
            let renewal = RENEWALS.iter().find(|renewal| renewal.name == case.name).unwrap();
            let vendors = Vendors::start();
            let case = if case.name == "opencode" { &OPENCODE_OAUTH } else { case };
            let bed = Bed::new(case, &place.with(vendors.environment()), true, |_| Reply::text("logged in"));
            let file = bed.home.path(renewal.file);
            std::fs::write(&file, (renewal.old)().to_string()).unwrap();
            if case.name == "gemini" {
                let settings = json!({ "security": { "auth": { "selectedType": "oauth-personal" },
                    "folderTrust": { "enabled": false } }, "privacy": { "usageStatisticsEnabled": false } });
                std::fs::write(bed.home.path(".gemini/settings.json"), settings.to_string()).unwrap();
                std::fs::remove_file(bed.home.path(".gemini/.env")).unwrap();
            }
            bed.home.give_away();
            bed.completes(&bed.start(json!({ "message": "who am I" })), "logged in");
            let now = std::fs::read_to_string(&file).unwrap();
            let now: Value = serde_json::from_str(&now).unwrap_or_else(|error| panic!("{error}: {now}"));
            assert_eq!(now.pointer(renewal.access), Some(&json!(NEW)), "{} {}: {now}", case.name, place.show());
            let asked = bed.model.asked();
            let is_used = asked.iter().any(|request| super::cases::carries(request, NEW)) || vendors.were_shown(NEW);
            assert!(is_used, "{} {}: the new one was used", case.name, place.show());
        },
    );
}
