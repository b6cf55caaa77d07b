//! What people correct takes effect at once: domains, claims, edges, calibrations.

use matsu_core::ports::store::{NewCalibration, ReadCalibration};
use matsu_core::research::calibration::{Calibration, CalibrationMethod};
use serde_json::{Value, json};

use super::lab::{Client, Lab, text};

/// Two domains that agree, and the materials they gave.
async fn agreed() -> (Lab, Client, String, Value) {
    let lab = Lab::open().await;
    lab.web
        .page("https://a.org/1", [text("Waiting is cheap [yes].", "the cost of waiting")])
        .page("https://b.org/1", [text("Waiting is cheap [yes] as measured.", "measurements of queues")]);
    lab.web.results("waiting", &["https://a.org/1", "https://b.org/1"]);
    let client = lab.client("one");
    let task = client.task(None).await;
    let service = lab.start();
    client.queue(&task, &["waiting"]).await;
    client.all_done(&task).await;
    service.stop().await;
    let materials = client.materials(&task).await;
    (lab, client, task, materials)
}

#[tokio::test(start_paused = true)]
async fn a_rejected_claim_and_a_corrected_edge_show_at_once() {
    let (_lab, client, task, before) = agreed().await;
    let claim = &before["claims"][0];
    assert_eq!(claim["confidence"], 0.655);
    let (claim_id, edge_id) = (&claim["id"], &claim["evidence"][0]["edge_id"]);
    let said = client.call("feedback", json!({ "action": "claim_reject", "claim_id": claim_id, "reason": "no" })).await;
    assert_eq!(said["claim_id"], *claim_id);
    let adopted = json!({ "task_id": task, "options": { "only": "adopted" } });
    assert_eq!(client.call("get_materials", adopted.clone()).await["total"], 1);
    client.call("feedback", json!({ "action": "claim_restore", "claim_id": claim_id })).await;
    assert_eq!(client.call("get_materials", adopted).await["total"], 2);
    let correct =
        |relation: &str| json!({ "action": "edge_correct", "edge_id": edge_id, "correct_relation": relation });
    let same = client.call("feedback", correct("supports")).await;
    assert_eq!((same.get("sample_id"), &same["claim"]["confidence"]), (None, &json!(0.667)), "{same}");
    let changed = client.call("feedback", correct("refutes")).await;
    assert!(changed["sample_id"].as_str().unwrap().starts_with("nlc_"));
    assert_eq!((&changed["previous_relation"], &changed["claim"]["confidence"]), (&json!("supports"), &json!(0.333)));
    let origin =
        json!({ "action": "edge_correct", "edge_id": claim["origin"]["edge_id"], "correct_relation": "refutes" });
    assert_eq!(client.call("feedback", origin).await["error_code"], "INVALID_PARAMS");
    let unknown = json!({ "action": "claim_reject", "claim_id": "c_nope", "reason": "no" });
    assert_eq!(client.call("feedback", unknown).await["error_code"], "RESOURCE_NOT_FOUND");
}

#[tokio::test(start_paused = true)]
async fn a_blocked_domain_is_neither_listed_nor_read() {
    let (lab, client, task, _) = agreed().await;
    lab.web
        .page("https://x.a.org/2", [text("More of it.", "more of a")])
        .results("again", &["https://x.a.org/2", "https://b.org/1"]);
    let rule = |action: &str| json!({ "action": action, "domain_pattern": "*.a.org", "reason": "spam" });
    let said = client.call("feedback", rule("domain_block")).await;
    assert!(said["rule_id"].as_str().unwrap().starts_with("dor_"));
    let _service = lab.start();
    client.queue(&task, &["again"]).await;
    client.all_done(&task).await;
    assert!(!lab.web.fetched().contains(&"https://x.a.org/2".to_owned()));
    client.call("feedback", rule("domain_unblock")).await;
    client.queue(&task, &["again"]).await;
    client.all_done(&task).await;
    assert!(lab.web.fetched().contains(&"https://x.a.org/2".to_owned()), "the newest rule wins");
    assert_eq!(client.call("feedback", rule("domain_clear_override")).await["cleared_rules"], 2);
    for pattern in ["*", "*.com", "co.jp", "*.io"] {
        let said = client
            .call("feedback", json!({ "action": "domain_block", "domain_pattern": pattern, "reason": "x" }))
            .await;
        assert_eq!(
            (&said["error_code"], &said["details"]["param_name"]),
            (&json!("INVALID_PARAMS"), &json!("domain_pattern"))
        );
    }
    let silent = json!({ "action": "domain_block", "domain_pattern": "a.org" });
    assert_eq!(client.call("feedback", silent).await["details"]["param_name"], "reason");
    let stray = json!({ "action": "claim_restore", "claim_id": "c_1", "domain_pattern": "a.org" });
    assert_eq!(client.call("feedback", stray).await["details"]["param_name"], "domain_pattern");
}

#[tokio::test(start_paused = true)]
async fn evaluations_are_scored_and_kept() {
    let lab = Lab::open().await;
    let client = lab.client("one");
    let data = json!({ "source": "judge", "predictions": [0.9, 0.2], "labels": [1, 0] });
    let said = client.call("calibration_metrics", json!({ "action": "evaluate", "data": data })).await;
    assert_eq!((&said["brier_score"], &said["expected_calibration_error"]), (&json!(0.025), &json!(0.15)), "{said}");
    let edges = json!({ "source": "judge", "predictions": [0.0, 1.0], "labels": [0, 1] });
    let said = client.call("calibration_metrics", json!({ "action": "evaluate", "data": edges })).await;
    let bins = said["bins"].as_array().unwrap();
    assert_eq!((&bins[0]["count"], &bins[9]["count"]), (&json!(1), &json!(1)), "0 and 1 are counted");
    let list =
        client.call("calibration_metrics", json!({ "action": "get_evaluations", "data": { "source": "judge" } })).await;
    assert_eq!(list["evaluations"].as_array().unwrap().len(), 2);
    let diagram = client
        .call("calibration_metrics", json!({ "action": "get_diagram_data", "data": { "source": "judge" } }))
        .await;
    assert_eq!(diagram["evaluation_id"], said["evaluation_id"]);
    for (data, field) in [
        (json!({ "predictions": [0.5], "labels": [1] }), "data.source"),
        (json!({ "source": "judge", "predictions": [0.5], "labels": [1, 0] }), "data.labels"),
        (json!({ "source": "judge", "predictions": [1.5], "labels": [1] }), "data.predictions[0]"),
        (json!({ "source": "judge", "predictions": [0.5], "labels": [2] }), "data.labels[0]"),
    ] {
        let said = client.call("calibration_metrics", json!({ "action": "evaluate", "data": data })).await;
        assert_eq!((&said["error_code"], &said["details"]["param_name"]), (&json!("INVALID_PARAMS"), &json!(field)));
    }
    let back = client.call("calibration_rollback", json!({ "source": "judge" })).await;
    assert_eq!(back["error_code"], "CALIBRATION_ERROR");
}

#[tokio::test(start_paused = true)]
async fn ten_corrections_teach_the_judge_and_its_scores_follow() {
    let lab = Lab::open().await;
    let (_service, client) = (lab.start(), lab.client("one"));
    let (task, edges) = judged(&lab, &client, 10).await;
    for edge in edges.iter().take(10) {
        let said = client
            .call("feedback", json!({ "action": "edge_correct", "edge_id": edge, "correct_relation": "neutral" }))
            .await;
        assert!(said["sample_id"].is_string(), "{said}");
    }
    let stats = client.call("calibration_metrics", json!({ "action": "get_stats" })).await;
    let judge = &stats["stats"]["sources"]["judge"];
    assert_eq!((&judge["version_in_force"], &judge["samples_total"]), (&json!(1), &json!(10)), "{stats}");
    assert!(judge["brier_after"].as_f64().unwrap() < judge["brier_before"].as_f64().unwrap(), "{stats}");
    lab.web
        .page("https://new.org/", [text("Waiting is cheap, says another [yes].", "another voice")])
        .results("more", &["https://new.org/"]);
    client.queue(&task, &["more"]).await;
    client.all_done(&task).await;
    let materials = client.materials(&task).await;
    let new = materials["claims"]
        .as_array()
        .unwrap()
        .iter()
        .find(|claim| claim["origin"]["url"] == "https://new.org/")
        .unwrap();
    let shown = new["evidence"].as_array().unwrap().iter().map(|edge| edge["probability"].as_f64().unwrap());
    assert!(shown.clone().all(|p| p < 0.9), "the scores shown are the calibrated ones: {new}");
}

/// A task whose search has ended with at least this many edges; their ids.
async fn judged(lab: &Lab, client: &Client, at_least: usize) -> (String, Vec<Value>) {
    let mut urls = Vec::new();
    // Words and no numbers: a passage with another number supports nothing.
    let places = "home work school sea rain town snow sleep doubt summer spring love";
    for (n, place) in places.split(' ').enumerate() {
        let url = format!("https://s{n}.org/");
        lab.web.page(&url, [text(&format!("Waiting is cheap in {place} [yes]."), &format!("case {}", n * 37))]);
        urls.push(url);
    }
    lab.web.results("waiting", &urls.iter().map(String::as_str).collect::<Vec<_>>());
    let task = client.task(None).await;
    client.queue(&task, &["waiting"]).await;
    client.all_done(&task).await;
    let found = client.materials(&task).await;
    let claims = found["claims"].as_array().unwrap().iter();
    let edges: Vec<Value> = claims.flat_map(|claim| claim["evidence"].as_array().unwrap().clone()).collect();
    assert!(edges.len() >= at_least, "{found}");
    (task, edges.into_iter().map(|mut edge| edge["edge_id"].take()).collect())
}

#[tokio::test(start_paused = true)]
async fn a_fit_that_is_worse_than_the_version_in_force_is_undone_by_itself() {
    let lab = Lab::open().await;
    let (_service, client) = (lab.start(), lab.client("one"));
    let (_, edges) = judged(&lab, &client, 7).await;
    let sharp = Calibration { method: CalibrationMethod::Temperature, scale: 1.5, shift: 0.0 };
    let first = NewCalibration {
        source: "judge".to_owned(),
        calibration: sharp,
        samples_used: 0,
        brier_before: 0.0,
        brier_after: 0.0,
        now: lab.clock.now(),
    };
    lab.store.run(first).await.unwrap();
    // Every third correction, which is what a fit is judged by, says that the judge was right after all.
    for (edge, relation) in [
        (0, "neutral"),
        (1, "neutral"),
        (0, "supports"),
        (2, "neutral"),
        (3, "neutral"),
        (2, "supports"),
        (4, "neutral"),
        (5, "neutral"),
        (4, "supports"),
        (6, "neutral"),
    ] {
        let wish = json!({ "action": "edge_correct", "edge_id": edges[edge], "correct_relation": relation });
        let said = client.call("feedback", wish).await;
        assert!(said["sample_id"].is_string(), "{said}");
    }
    let stats = client.call("calibration_metrics", json!({ "action": "get_stats" })).await;
    let judge = &stats["stats"]["sources"]["judge"];
    assert_eq!((&judge["versions"], &judge["version_in_force"]), (&json!([2, 1]), &json!(1)), "{stats}");
    assert_eq!((&judge["rollbacks"], &stats["stats"]["total_rollbacks"]), (&json!(1), &json!(1)), "{stats}");
    assert_eq!(
        lab.store.run(ReadCalibration("judge".to_owned())).await.unwrap().unwrap().calibration,
        sharp,
        "to the last digit"
    );
}
