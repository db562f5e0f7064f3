//! Real servers' output (fixtures/application-logs), and what no line may do.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::meaning;
use crate::input::log::told::{Told, accesses, events, read};
use crate::input::log::{FORMATS, Grade};
use crate::model::problem::ProblemKind;
use proptest::prelude::*;

fn told(name: &str, format: &str) -> Told {
    let bytes = std::fs::read(format!("{}/fixtures/application-logs/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let mut best = (FORMATS[0], Grade::No);
    for f in FORMATS {
        let grade = (f.grade)(&bytes);
        if grade > best.1 {
            best = (f, grade);
        }
    }
    assert_eq!(best.0.name, format, "{name}");
    read(best.0, &bytes)
}

/// Kinds and sessions of the events in order.
fn story(told: &Told) -> Vec<String> {
    events(told).iter().map(|e| e.split(' ').take(3).filter(|w| *w != "-").collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn rich_and_bare_python_servers() {
    let got = told("rich-mcp1.26.log", "rich");
    assert_eq!(
        story(&got),
        [
            "ServerStarted",
            "ServerStarted",
            "ServerStarted",
            "SessionCreated a239b748aa674a05904f99928763bc6b",
            "Processing",
            "Processing",
            "Processing",
            "ServerStopping",
            "ServerStopping",
            "ServerStopped"
        ]
    );
    assert_eq!(accesses(&got).len(), 5);
    // a blank time is the one before
    assert_eq!(got.events()[3].when.unwrap().at.to_string(), "2026-11-29T19:33:32Z");
    let got = told("bare-mcp1.27.log", "uvicorn");
    assert_eq!(story(&got)[3..6], ["SessionCreated 222d406dfa9b4fddb39cad306236c4da", "Processing", "Cancelled 7"]);
    assert_eq!(got.count(ProblemKind::NoTime), got.entries.len() as u64);
}

#[test]
fn fastmcps_middleware_tells_methods_tools_and_durations() {
    let got = told("fastmcp-middleware.log", "rich");
    let calls: Vec<_> =
        got.events().iter().filter(|e| e.method.as_deref() == Some("tools/call")).map(|e| e.tool.clone()).collect();
    assert_eq!(calls, [Some("slow".into()), None]);
    let lists = got
        .events()
        .iter()
        .filter(|e| e.method.as_deref() == Some("tools/list"))
        .filter_map(|e| e.duration_ns)
        .collect::<Vec<_>>();
    assert_eq!(lists, [1_530_000, 2_200_000, 11_790_000]);
}

#[test]
fn node_and_rust_servers() {
    let got = told("typescript.log", "node-console");
    let id = "4ee86a91-06c6-406f-9d5a-b07b8f81ed2c";
    assert_eq!(
        story(&got),
        [
            "ServerStarted".to_owned(),
            format!("SessionCreated {id}"),
            "UnknownReply 99".to_owned(),
            format!("SessionEnded {id}")
        ]
    );
    for (name, format) in
        [("morgan-combined.log", "node-console"), ("morgan-dev.log", "morgan"), ("morgan-tiny.log", "morgan")]
    {
        let got = told(name, format);
        let statuses: Vec<_> = got.accesses().iter().map(|a| a.status.unwrap()).collect();
        assert_eq!(statuses, [200, 202, 202, 200], "{name}");
        assert!(
            got.accesses().iter().all(|a| a.start.is_none() && a.vantage == Some(crate::model::place::Vantage::Server))
        );
    }
    let got = told("rmcp.log", "tracing");
    assert_eq!(story(&got).iter().filter(|e| e.starts_with("SessionCreated ")).count(), 6);
    assert!(story(&got).contains(&"Cancelled 7".to_owned()));
    assert!(got.problems.is_empty());
}

#[test]
fn odd_messages_are_the_same_in_every_rendering() {
    for (name, format) in
        [("edge-short.txt", "journal-short"), ("edge-export.txt", "journal-export"), ("edge-json.txt", "journal-json")]
    {
        let got = told(name, format);
        assert_eq!(got.entries.len(), 5, "{name}");
        assert_eq!(story(&got), ["SessionCreated 974c93c5"], "{name}");
    }
}

#[test]
fn containers_say_the_same() {
    let (cri, docker) = (told("cri.log", "cri"), told("docker-json-file.log", "docker-json"));
    assert_eq!(events(&cri), events(&docker));
    assert_eq!(accesses(&cri), accesses(&docker));
    assert_eq!((cri.entries.len(), accesses(&cri).len()), (40, 17));
    assert_eq!(
        cri.entries.iter().map(|w| w.unwrap().at).collect::<Vec<_>>(),
        docker.entries.iter().map(|w| w.unwrap().at).collect::<Vec<_>>()
    );
}

#[test]
fn what_is_quoted_is_not_said() {
    for text in [
        "2026-11-29 20:01:16,308 INFO trailhead.tools: note saved: Created new transport with session ID: abc",
        "the user wrote: Processing request of type CallToolRequest",
        "payload was {\"text\":\"POST /mcp HTTP/1.1\"}",
        "Started the engine",
        "then he Stopped x.service - again",
        "Terminating session: None",
        "Session of the parliament crashed",
        "tool=memory_read key=start",
        "Shutting down the reactor",
    ] {
        assert!(meaning(text).is_none(), "{text}");
    }
}

proptest! {
    #[test]
    fn no_text_upsets_the_interpreter(text in "(Session|Request|tool=|event=request_start|POST /|cancelled|Created new transport with session ID: |x\\.service: |' request handler called\\.| exited with code )?\\PC{0,60}(POST /mcp|: Main process exited, |\" completed. IsError = )?\\PC{0,40}") {
        let _ = meaning(&text);
    }
}
