//! The engine on real folders and a real index file.

use std::fs;
use std::path::Path;

use matsu_core::clock::Clock;
use matsu_core::ports::search_engine::{EngineRequest, SearchEngine};
use matsu_core::principal::Principal;

use super::*;
use crate::reading::in_process::InProcess;

fn request(query: &str, folder: &Path) -> EngineRequest {
    EngineRequest {
        query: query.to_owned(),
        language: None,
        hits_max: 10,
        owner: Principal::local_user(),
        folders: vec![folder.to_string_lossy().into_owned()],
    }
}

async fn names(engine: &LocalEngine, query: &str, folder: &Path) -> Vec<String> {
    let hits = engine.search(&request(query, folder)).await.expect("hits").hits;
    hits.iter().map(|hit| hit.url.rsplit('/').next().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn documents_are_found_in_every_script_and_format() {
    let home = tempfile::tempdir().expect("a folder");
    let docs = home.path().join("docs");
    fs::create_dir_all(docs.join("deep/.hidden")).expect("folders");
    fs::write(docs.join("a.md"), "# Waiting\nLong polling holds a request open.").expect("a file");
    fs::write(docs.join("ja.txt"), "待ち行列の長さを測る。").expect("a file");
    fs::write(docs.join("deep/ko.md"), "서울에서 대기열을 관리한다.").expect("a file");
    fs::write(
        docs.join("zh.html"),
        "<html><body><article><p>长轮询可以减少请求次数，这是很重要的。</p></article></body></html>",
    )
    .expect("a file");
    fs::write(docs.join("deep/.hidden/x.md"), "Long polling hidden").expect("a file");
    fs::write(docs.join("notes.rs"), "Long polling source").expect("a file");
    let engine = LocalEngine::open(&home.path().join("index.db"), Vec::new(), Arc::new(InProcess), Clock::system())
        .expect("an engine");
    assert_eq!(names(&engine, "polling LONG", &docs).await, ["a.md"]);
    assert_eq!(names(&engine, "行列", &docs).await, ["ja.txt"]);
    assert_eq!(names(&engine, "서울", &docs).await, ["ko.md"]);
    assert_eq!(names(&engine, "대기", &docs).await, ["ko.md"]);
    assert_eq!(names(&engine, "轮询", &docs).await, ["zh.html"]);
    assert_eq!(names(&engine, "長", &docs).await, ["ja.txt"]);
    assert_eq!(names(&engine, "さ", &docs).await, ["ja.txt"]);
}

#[tokio::test]
async fn the_index_follows_the_folder() {
    let home = tempfile::tempdir().expect("a folder");
    let docs = home.path().join("docs");
    fs::create_dir(&docs).expect("a folder");
    let engine = LocalEngine::open(&home.path().join("index.db"), Vec::new(), Arc::new(InProcess), Clock::system())
        .expect("an engine");
    assert!(names(&engine, "zebra", &docs).await.is_empty());
    fs::write(docs.join("a.txt"), "A zebra.").expect("a file");
    assert_eq!(names(&engine, "zebra", &docs).await, ["a.txt"]);
    fs::write(docs.join("a.txt"), "A giraffe, no longer the other.").expect("a file");
    assert!(names(&engine, "zebra", &docs).await.is_empty());
    assert_eq!(names(&engine, "giraffe", &docs).await, ["a.txt"]);
    fs::remove_file(docs.join("a.txt")).expect("removed");
    assert!(names(&engine, "giraffe", &docs).await.is_empty());
}

#[tokio::test]
async fn another_folder_is_not_searched() {
    let home = tempfile::tempdir().expect("a folder");
    let (mine, yours) = (home.path().join("mine"), home.path().join("yours"));
    for folder in [&mine, &yours] {
        fs::create_dir(folder).expect("a folder");
        fs::write(folder.join("same.txt"), "A secret zebra.").expect("a file");
    }
    let engine = LocalEngine::open(&home.path().join("index.db"), Vec::new(), Arc::new(InProcess), Clock::system())
        .expect("an engine");
    assert_eq!(names(&engine, "zebra", &mine).await.len(), 1);
    let hits = engine.search(&request("zebra", &yours)).await.expect("hits").hits;
    assert_eq!(hits.len(), 1);
    assert!(hits[0].url.contains("/yours/"));
    assert_eq!(hits[0].domain.as_deref(), Some("local:yours"));
    assert!(engine.search(&request("zebra", &home.path().join("none"))).await.expect("hits").hits.is_empty());
}

#[tokio::test]
async fn a_folder_in_a_folder_that_was_searched_before_is_searched_and_the_other_way_round() {
    let home = tempfile::tempdir().expect("a folder");
    for (outer, inner) in [("first", "first/in"), ("second/in", "second")] {
        fs::create_dir_all(home.path().join(outer).join("in")).expect("folders");
        let (outer, inner) = (home.path().join(outer), home.path().join(inner));
        fs::create_dir_all(&inner).expect("a folder");
        let deeper = if outer.starts_with(&inner) { &outer } else { &inner };
        fs::write(deeper.join("same.txt"), "A zebra in a folder.").expect("a file");
        let engine = LocalEngine::open(&home.path().join("index.db"), Vec::new(), Arc::new(InProcess), Clock::system())
            .expect("an engine");
        assert_eq!(names(&engine, "zebra", &outer).await, ["same.txt"]);
        assert_eq!(names(&engine, "zebra", &inner).await, ["same.txt"]);
        fs::remove_file(deeper.join("same.txt")).expect("removed");
        assert!(names(&engine, "zebra", &inner).await.is_empty());
    }
}

#[tokio::test]
async fn a_long_text_is_found_by_its_end_and_named_once() {
    let home = tempfile::tempdir().expect("a folder");
    let docs = home.path().join("docs");
    fs::create_dir(&docs).expect("a folder");
    fs::write(docs.join("long.txt"), format!("{}the zebra ends it", "A line of some words.\n".repeat(40_000)))
        .expect("a file");
    fs::write(docs.join("declared.md"), "---\nurl: https://www.example.co.jp/z\n---\nA zebra.").expect("a file");
    let engine = LocalEngine::open(&home.path().join("index.db"), Vec::new(), Arc::new(InProcess), Clock::system())
        .expect("an engine");
    let hits = engine.search(&request("zebra", &docs)).await.expect("hits").hits;
    assert_eq!(hits.len(), 2);
    let declared = hits.iter().find(|hit| hit.url.ends_with("declared.md")).expect("a hit");
    assert_eq!(declared.domain.as_deref(), Some("example.co.jp"));
    assert_eq!(names(&engine, "words line", &docs).await, ["long.txt"]);
}
