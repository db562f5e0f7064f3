//! What each output format makes of a report.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use crosswire::model::report::Report;
use crosswire::report::view::View;
use crosswire::report::{Calls, RENDERERS, RenderOptions, clean, find, tables};

fn render(report: &Report, format: &str, options: &RenderOptions) -> String {
    let mut out = Vec::new();
    let renderer = find(format).unwrap();
    renderer.report.unwrap()(&View::new(report), options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn plain(report: &Report, format: &str) -> String {
    render(report, format, &RenderOptions::default())
}

#[test]
fn text() {
    insta::assert_snapshot!("text-collision", plain(&common::collision(), "text"));
    insta::assert_snapshot!("text-stale-window", plain(&common::stale_window(), "text"));
    insta::assert_snapshot!("text-clean", plain(&common::clean(), "text"));
}

#[test]
fn text_fits_any_width() {
    for width in [80, 100, 120, 160, 200] {
        for report in [common::collision(), common::stale_window(), common::clean()] {
            let text = render(&report, "text", &RenderOptions { width, ..RenderOptions::default() });
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
    let narrow = RenderOptions { width: 80, ..RenderOptions::default() };
    insta::assert_snapshot!("text-collision-80", render(&common::collision(), "text", &narrow));
}

#[test]
fn text_in_ascii_is_ascii() {
    let options = RenderOptions { ascii: true, verbose: true, ..RenderOptions::default() };
    assert!(render(&common::collision(), "text", &options).is_ascii());
}

#[test]
fn text_has_colour_only_when_asked() {
    assert!(!plain(&common::collision(), "text").contains('\x1b'));
    let options = RenderOptions { color: true, ..RenderOptions::default() };
    assert!(render(&common::collision(), "text", &options).contains("\x1b[31m"));
}

#[test]
fn markdown() {
    insta::assert_snapshot!("markdown-collision", plain(&common::collision(), "markdown"));
    insta::assert_snapshot!("markdown-stale-window", plain(&common::stale_window(), "markdown"));
}

#[test]
fn csv() {
    for table in tables::TABLES {
        let options = RenderOptions { table: Some(table), calls: Some(Calls::All), ..RenderOptions::default() };
        let text = render(&common::stale_window(), "csv", &options);
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        assert_eq!(reader.headers().unwrap().len(), table.columns.iter().filter(|c| c.in_csv()).count());
        assert!(reader.records().all(|r| r.is_ok()), "{}", table.name);
        assert!(text.ends_with("\r\n"));
    }
    insta::assert_snapshot!("csv-findings", plain(&common::collision(), "csv"));
}

#[test]
fn json_and_ndjson() {
    insta::assert_snapshot!("json-collision", plain(&common::collision(), "json"));
    insta::assert_snapshot!("ndjson-stale-window", plain(&common::stale_window(), "ndjson"));
    let json: serde_json::Value = serde_json::from_str(&plain(&common::stale_window(), "json")).unwrap();
    assert_eq!(json["schema"], "crosswire.report/1");
    assert_eq!(json["summary"]["calls"], json["calls"].as_array().unwrap().len());
    let lines = plain(&common::stale_window(), "ndjson");
    let types: Vec<String> = lines
        .lines()
        .map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap()["type"].as_str().unwrap().to_string())
        .collect();
    assert_eq!(types.last().unwrap(), "summary");
    assert!(types.contains(&"window".to_string()));
}

#[test]
fn calls_can_be_chosen() {
    let count = |calls| {
        let options = RenderOptions { calls, ..RenderOptions::default() };
        let json: serde_json::Value = serde_json::from_str(&render(&common::stale_window(), "json", &options)).unwrap();
        json["calls"].as_array().unwrap().len()
    };
    assert_eq!((count(None), count(Some(Calls::Cited)), count(Some(Calls::None))), (5, 3, 0));
}

#[test]
fn hostile_text_cannot_act() {
    let report = common::hostile();
    for renderer in RENDERERS.iter().filter(|r| r.report.is_some()) {
        let options = RenderOptions { verbose: true, ..RenderOptions::default() };
        let text = render(&report, renderer.name, &options);
        assert!(!text.chars().any(|c| clean::is_unsafe(c) && c != '\n' && c != '\r'), "{}", renderer.name);
        if !matches!(renderer.name, "json" | "ndjson" | "csv") {
            assert!(text.len() < 200_000, "{}: {} bytes", renderer.name, text.len());
        }
        // In a fenced block of Markdown nothing is HTML.
        let outside: String = text.split("```").step_by(2).collect();
        if matches!(renderer.name, "markdown" | "html") {
            assert!(!outside.contains("<img"), "{}", renderer.name);
        }
        if let (Some(path), "html") = (std::env::var_os("CROSSWIRE_HOSTILE"), renderer.name) {
            std::fs::write(path, &text).unwrap();
        }
    }
    let rows = plain(&report, "csv");
    let mut reader = csv::Reader::from_reader(rows.as_bytes());
    for record in reader.records() {
        assert!(record.unwrap().iter().all(|cell| !cell.starts_with(['=', '+', '@'])));
    }
    let markdown = plain(&report, "markdown");
    let columns = |line: &str| line.replace("\\|", "").matches('|').count();
    let mut before = None;
    for line in markdown.lines() {
        match (line.starts_with("| "), before) {
            (true, Some(n)) => assert_eq!(columns(line), n, "{line}"),
            (true, None) => before = Some(columns(line)),
            (false, _) => before = None,
        }
    }
}

fn timeline(report: &Report, format: &str, options: &RenderOptions) -> String {
    let mut out = Vec::new();
    find(format).unwrap().timeline.unwrap()(&View::new(report), options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn ladders() {
    let plain = RenderOptions::default();
    insta::assert_snapshot!("ladder-collision", timeline(&common::collision(), "text", &plain));
    insta::assert_snapshot!("ladder-stale-window", timeline(&common::stale_window(), "text", &plain));
    let around = RenderOptions { around: Some(1), mermaid: true, ..RenderOptions::default() };
    insta::assert_snapshot!("ladder-around-mermaid", timeline(&common::collision(), "markdown", &around));
    insta::assert_snapshot!("ladder-collision-svg", timeline(&common::collision(), "svg", &plain));
}

#[test]
fn ladders_fit_and_have_an_ascii_form() {
    for width in [40, 80, 120] {
        for report in [common::collision(), common::stale_window(), common::clean()] {
            let options = RenderOptions { width, ascii: true, ..RenderOptions::default() };
            let text = timeline(&report, "text", &options);
            assert!(text.is_ascii());
            // The first line says how much could be read, in one line for programs.
            let wide = text.lines().skip(1).find(|l| l.len() > width);
            assert_eq!(wide, None, "{text}");
            assert_eq!(text.contains("|-->|"), width == 40, "{text}");
        }
    }
}

#[test]
fn html() {
    let page = plain(&common::collision(), "html");
    insta::assert_snapshot!("html-collision", page);
    // Nothing is fetched: no element or style that loads anything.
    for loader in ["src=", "url(", "<link", "@import", "<iframe", "<img", "http:"] {
        assert!(!page.replace("http://www.w3.org/2000/svg", "").contains(loader), "{loader}");
    }
    assert_eq!(page.matches("<details").count(), page.matches("</details>").count());
    assert_eq!(page.matches("<script>").count(), 1);
}

fn many() -> Report {
    let mut report = common::collision();
    let one = report.findings[0].clone();
    report.findings = std::iter::repeat_n(one, 10_000).collect();
    common::counted(report)
}

/// Pages for `tests/e2e/browser.py`, which says where it wants them.
#[test]
fn pages_for_a_browser() {
    let Some(folder) = std::env::var_os("CROSSWIRE_PAGES").map(std::path::PathBuf::from) else { return };
    let write = |name: &str, page: String| std::fs::write(folder.join(name), page).unwrap();
    write("many.html", plain(&many(), "html"));
    write("hostile.html", plain(&common::hostile(), "html"));
    write("hostile-timeline.html", timeline(&common::hostile(), "html", &RenderOptions::default()));
    write("clean.html", plain(&common::clean(), "html"));
}

#[test]
fn html_of_many_findings_is_still_light() {
    let page = plain(&many(), "html");
    assert!(page.len() < 5_000_000, "{}", page.len());
    assert_eq!(page.matches("<svg").count(), 50);
    assert_eq!(page.matches("<details").count(), 50);
    assert_eq!(page.matches(" id=\"f").count(), 10_002, "each finding, the heading and the filters");
    assert!(page.contains("backend.pcap:43; backend.pcap:49; backend.pcap:57</p>"));
    assert!(page.contains("9,800 more rows"));
}

#[test]
fn one_call_in_full() {
    use crosswire::model::report::{Bodies, Detail};
    use crosswire::report::call::{self, Shown};
    let mut report = common::collision();
    report.calls[2].bodies = Some(Bodies { request: None, reply: None });
    report.calls[2].sightings[0].detail = Some(Box::new(Detail {
        request_line: Some("POST /mcp HTTP/1.1".into()),
        request_headers: vec![("content-type".into(), "application/json".into())],
        request: Some(r#"{"jsonrpc":"2.0","id":3,"method":"tools/call"}"#.into()),
        status_line: Some("HTTP/1.1 200 OK".into()),
        response_headers: vec![("x-evil".into(), "\u{1b}[2J".into())],
        reply: Some(r#"{"jsonrpc":"2.0","id":3,"result":{"entry":"j-17","entry":"twice"}}"#.into()),
        record: None,
    }));
    let options = RenderOptions::default();
    let view = View::new(&report);
    let text = |raw| {
        let mut out = Vec::new();
        call::text(&Shown { view: &view, options: &options, raw }, &report.calls[2], &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    insta::assert_snapshot!("show-call", text(false));
    assert!(text(true).contains(r#"{"entry":"j-17","entry":"twice"}"#));
    let mut json = Vec::new();
    call::json(&[&report.calls[2]], &mut json).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["calls"][0]["sightings"][0]["detail"]["request_line"], "POST /mcp HTTP/1.1");
}
