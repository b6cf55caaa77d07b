//! A login that has grown old: the program renews it, and what it writes lands in the user's own file.

use std::io::{Read, Write};
use std::net::TcpListener;

use matsu_testkit::model_server::Reply;
use serde_json::{Value, json};

use super::five::{Bed, for_each_of};

/// Claims that ran out in 1970, and claims that last until 2100; signed by nobody.
const OLD: &str = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.eyJleHAiOjEwMDAsImh0dHBzOi8vYXBpLm9wZW5haS5jb20vYXV0aCI6eyJjaGF0Z3B0X3BsYW5fdHlwZSI6InBsdXMiLCJjaGF0Z3B0X2FjY291bnRfaWQiOiJhY2MifX0.c2ln";
const NEW: &str = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.eyJleHAiOjQxMDI0NDQ4MDAsImh0dHBzOi8vYXBpLm9wZW5haS5jb20vYXV0aCI6eyJjaGF0Z3B0X3BsYW5fdHlwZSI6InBsdXMiLCJjaGF0Z3B0X2FjY291bnRfaWQiOiJhY2MifX0.c2ln";

/// Answers every request with new tokens; its address. Ends with the test's process.
fn token_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/oauth/token", listener.local_addr().unwrap());
    let tokens = json!({ "id_token": NEW, "access_token": NEW, "refresh_token": "renewed" }).to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut asked = Vec::new();
            let mut part = [0; 4096];
            // The body is one short object.
            while !asked.ends_with(b"}") {
                match stream.read(&mut part) {
                    Ok(bytes) if bytes > 0 => asked.extend(&part[..bytes]),
                    _ => break,
                }
            }
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
            let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{tokens}", tokens.len());
        }
    });
    address
}

/// Of the five only Codex can be led to a token server on loopback.
#[test]
fn a_login_that_is_renewed_is_renewed_where_it_lies() {
    for_each_of(
        "a renewed login lands in the user's file",
        |case| case.name == "codex",
        |case, programs| {
            let lines = format!("[env]\nCODEX_REFRESH_TOKEN_URL_OVERRIDE = \"{}\"\n", token_server());
            let bed = Bed::with(case, programs, true, &lines, |_| Reply::text("logged in"));
            let tokens = json!({ "id_token": OLD, "access_token": OLD, "refresh_token": "old", "account_id": "acc" });
            let login = json!({ "auth_mode": "chatgpt", "OPENAI_API_KEY": null, "tokens": tokens,
            "last_refresh": "2025-01-01T00:00:00Z" });
            let file = bed.home.path(".codex/auth.json");
            std::fs::write(&file, login.to_string()).unwrap();
            bed.completes(&bed.start(json!({ "message": "who am I" })), "logged in");
            let now: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
            assert_eq!(
                (&now["tokens"]["refresh_token"], &now["tokens"]["access_token"]),
                (&json!("renewed"), &json!(NEW))
            );
            assert!(
                bed.model.asked().iter().any(|request| super::cases::carries(request, NEW)),
                "the new one was used"
            );
        },
    );
}
