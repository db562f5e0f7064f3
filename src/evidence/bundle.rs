//! Makes a bundle: chooses, redacts, analyses what is left, and packs it with its report.

use super::archive::{self, Archive, pack};
use super::cite::{Cited, Scope};
use super::content::{Content, Member, base_name};
use super::gather::{self, Caught, Found};
use super::keep_back;
use super::learn::Learner;
use super::manifest::{self, MANIFEST_HASH, Manifest, Redaction};
use super::pseudonym::Key;
use super::redact::{From, Kind, Known, Redactor};
use super::sha256;
use crate::analyze;
use crate::input::bundle::{self, MANIFEST, Reading, SCHEMA};
use crate::input::expand;
use crate::model::options::{AnalyzeOptions, ReadOptions};
use crate::model::report::{CallKey, Report};
use crate::report::clean::clean_block;
use crate::report::view::View;
use crate::report::{self, RenderOptions, json};
use anyhow::{Context, bail};
use regex::bytes::Regex;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What a bundle is to be.
pub struct Order<'a> {
    /// The inputs, as named on the command line.
    pub inputs: &'a [String],
    /// How they are to be read.
    pub read: &'a ReadOptions,
    /// The calls that it is about, with the findings about them; none: all findings.
    pub calls: &'a [CallKey],
    /// Where the bundle goes.
    pub output: &'a Path,
    /// Fields (JSON keys, headers) whose values are kept.
    pub keep: &'a [String],
    /// What is replaced though it would be kept.
    pub redact: &'a [Regex],
    /// `--no-redact`.
    pub is_open: bool,
    /// Decides the pseudonyms.
    pub key: Key,
    /// The command line.
    pub command: &'a [String],
}

/// What was made.
pub struct Made {
    /// The manifest.
    pub manifest: Manifest,
    /// Bytes of the bundle.
    pub bytes: u64,
    /// What could not be read of the inputs.
    pub troubles: Vec<String>,
}

/// Makes it.
///
/// # Errors
/// If an input cannot be read again, the bundle not be written, or its findings would not be those of
/// the inputs whatever is kept.
pub fn make(order: &Order<'_>) -> anyhow::Result<Made> {
    let kind = archive::Kind::of(order.output)?;
    let read = bundle::options(order.inputs, order.read);
    if let Some(source) = expand(order.inputs).0.iter().find(|s| !s.can_reopen()) {
        bail!("{}: cannot be read a second time; save it to a file first", source.name);
    }
    let mut report = analyze::run(order.inputs, &read, &AnalyzeOptions::default())?;
    if report.inputs.is_empty() {
        bail!("{}", report.troubles.join("\n"));
    }
    if let Some(key) = order.calls.iter().find(|key| report.calls.iter().all(|c| c.key != **key)) {
        bail!("{key}: there is no such call; `crosswire analyze … --calls all` lists them");
    }
    let possible = findings(&report);
    if !order.calls.is_empty() {
        narrow(&mut report, order.calls);
    }
    let found = gather::find(&report, order.inputs, &read)?;
    let caught = gather::exchanges(&found, &read)?;
    let wanted = findings(&report);
    let maker = Maker { order, kind, read: &read, report: &report, found: &found, caught: &caught, wanted, possible };
    let result = maker.make();
    // It is only there while findings are compared.
    let _ = std::fs::remove_file(maker.trial_path());
    result
}

struct Maker<'a> {
    order: &'a Order<'a>,
    kind: archive::Kind,
    read: &'a ReadOptions,
    report: &'a Report,
    found: &'a [Found],
    caught: &'a [Caught],
    /// The findings that the bundle must show.
    wanted: Vec<Claim>,
    /// Those of the inputs: what it may show.
    possible: Vec<Claim>,
}

/// Leaves the findings and windows that are about these calls.
fn narrow(report: &mut Report, calls: &[CallKey]) {
    let is_wanted = |key: &CallKey| calls.contains(key);
    report.findings.retain(|f| f.calls.iter().chain(&f.victim).chain(&f.owner).any(is_wanted));
    report.windows.retain(|w| w.lost.iter().chain(&w.trigger_call).any(is_wanted));
}

impl Maker<'_> {
    /// Does it show what it must, and nothing that the inputs do not show? Around a chosen call there
    /// may be others with findings of their own.
    fn holds(&self, report: &Report) -> bool {
        let got = findings(report);
        if self.order.calls.is_empty() {
            return got == self.wanted;
        }
        // What concerns a whole session may begin later in a part of it.
        let is_known = |claim: &Claim| {
            let same = |known: &Claim| known.rule == claim.rule && known.standing == claim.standing;
            self.possible.iter().any(same)
        };
        is_within(&self.wanted, &got) && got.iter().all(is_known)
    }

    fn make(&self) -> anyhow::Result<Made> {
        let cited = Cited::of(self.report, self.order.calls);
        let wanted = &self.wanted;
        let open = Known { is_off: true, ..Known::default() };
        // Without findings or a choice there is nothing to choose by.
        let scopes: &[Scope] =
            if wanted.is_empty() && self.order.calls.is_empty() { &[Scope::All] } else { Scope::EVERY };
        let mut chosen = None;
        for scope in scopes {
            let content = Content::choose(self.report, self.found, self.read, self.caught, &cited, *scope)?;
            let trial = self.trial(&content, &open)?;
            if self.holds(&trial.report) {
                chosen = Some((content, *scope));
                break;
            }
            if *scope == Scope::All {
                bail!("{}", differing(wanted, &findings(&trial.report), "writing the traffic anew"));
            }
        }
        let Some((content, scope)) = chosen else { bail!("nothing to bundle") };
        let mut learner = Learner::new(self.order.keep, self.order.redact);
        learner.report(self.report);
        content.exchanges.iter().for_each(|caught| learner.exchange(caught));
        content.log_texts().for_each(|text| learner.forced(&text));
        let Learner { mut known, reasons, .. } = learner;
        known.is_off = self.order.is_open;
        let mut trial = self.trial(&content, &known)?;
        let mut kept_back = vec![];
        if !self.holds(&trial.report) {
            kept_back = self.keep_back(&content, &known, &trial)?;
            known.kept_back = kept_back.iter().map(|w| w.to_lowercase()).collect();
            trial = self.trial(&content, &known)?;
        }
        let shown =
            |list: rustc_hash::FxHashSet<String>| list.into_iter().filter(|t| !known.forces(t.as_bytes())).collect();
        let kept = reasons.into_iter().map(|(what, list)| kept(what, shown(list))).collect();
        let redaction = Redaction {
            redacted: !known.is_off,
            replaced: replaced(&trial.redactor),
            kept: if known.is_off { vec![] } else { kept },
            kept_back,
        };
        self.finish(trial, scope, redaction)
    }

    /// The words to keep back so that the findings are those of the inputs.
    fn keep_back(&self, content: &Content<'_>, known: &Known, trial: &Trial) -> anyhow::Result<Vec<String>> {
        let mut candidates: Vec<(Kind, String)> = vec![];
        for (kind, words) in trial.redactor.replaced() {
            let may = |w: &&String| !known.secrets.contains(*w) && !known.forced.contains(&w.to_lowercase());
            candidates.extend(words.keys().filter(may).map(|w| (*kind, w.clone())));
        }
        candidates.retain(|(kind, _)| matches!(kind, Kind::Word | Kind::Number | Kind::Hex));
        candidates.sort_unstable();
        let candidates: Vec<String> = candidates.into_iter().map(|(_, w)| w).collect();
        let found = keep_back::needed(&candidates, |words| {
            let known = Known { kept_back: words.iter().map(|w| w.to_lowercase()).collect(), ..known.clone() };
            Ok(self.holds(&self.trial(content, &known)?.report))
        })?;
        found.ok_or_else(|| {
            anyhow::anyhow!(differing(
                &self.wanted,
                &findings(&trial.report),
                "redaction, whatever single words are kept back"
            ))
        })
    }

    fn cannot_write(&self) -> String {
        format!("{}: cannot be written", self.order.output.display())
    }

    fn trial_path(&self) -> PathBuf {
        let mut name = self.order.output.file_name().unwrap_or_default().to_owned();
        name.push(".partial");
        self.order.output.with_file_name(name)
    }

    /// Redacts, packs the evidence alone, and analyses that.
    fn trial(&self, content: &Content<'_>, known: &Known) -> anyhow::Result<Trial> {
        let mut redactor = Redactor::new(known.clone(), self.order.key.clone());
        let members = content.members(&mut redactor);
        let manifest = self.manifest(&members, &mut redactor);
        let zip = archive::Kind::Zip;
        let mut archive = Archive::new(zip);
        archive.add(pack(zip, MANIFEST, &serde_json::to_vec(&manifest)?, true)?)?;
        for (evidence, bytes) in &members {
            archive.add(pack(zip, &evidence.name, bytes, true)?)?;
        }
        let path = self.trial_path();
        std::fs::write(&path, archive.finish()?).with_context(|| self.cannot_write())?;
        let name = path.to_string_lossy().into_owned();
        let read = ReadOptions { jobs: self.read.jobs, ..ReadOptions::default() };
        let mut report = analyze::run(std::slice::from_ref(&name), &read, &AnalyzeOptions::default())?;
        let prefix = format!("{name}!");
        for input in &mut report.inputs {
            input.name = input.name.strip_prefix(&prefix).unwrap_or(&input.name).to_owned();
        }
        report.troubles.iter_mut().for_each(|t| *t = t.replace(&prefix, ""));
        Ok(Trial { members, report, redactor, manifest })
    }

    fn manifest(&self, members: &[Member], redactor: &mut Redactor) -> Manifest {
        let reading = Reading {
            tz: self.read.tz.as_ref().map(|tz| tz.name().to_owned()),
            year: self.read.year,
            client_timeout_ns: self.read.client_timeout_ns,
            endpoint: self.read.endpoint.as_ref().map(|e| redactor.string(e, From::Wire)),
            log_format: self.read.log_format.clone(),
            log_formats: self.read.log_formats.clone(),
        };
        Manifest {
            schema: SCHEMA.to_owned(),
            crosswire: env!("CARGO_PKG_VERSION").to_owned(),
            created: String::new(),
            command: vec![],
            inputs: vec![],
            evidence: members.iter().map(|(evidence, _)| evidence.clone()).collect(),
            reading,
            scope: String::new(),
            findings: 0,
            redaction: Redaction::default(),
            members: vec![],
        }
    }

    fn finish(&self, trial: Trial, scope: Scope, redaction: Redaction) -> anyhow::Result<Made> {
        let Trial { members, report, mut redactor, mut manifest } = trial;
        manifest.created = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        manifest.command = command(self.order.command, &mut redactor);
        manifest.inputs = self.originals(&mut redactor)?;
        manifest.scope = scope.name(!self.order.calls.is_empty()).to_owned();
        manifest.findings = report.findings.len() as u64;
        manifest.redaction = redaction;
        let kind = self.kind;
        let mut packed = vec![pack(kind, "README.txt", readme(&manifest, &report).as_bytes(), false)?];
        let options = RenderOptions { mermaid: true, ..RenderOptions::default() };
        for (format, name) in [("html", "report.html"), ("markdown", "report.md"), ("json", "report.json")] {
            let Some(render) = report::find(format).and_then(|r| r.report) else { continue };
            let mut bytes = vec![];
            render(&View::new(&report), &options, &mut bytes)?;
            packed.push(pack(kind, name, &bytes, false)?);
        }
        for (evidence, bytes) in &members {
            packed.push(pack(kind, &evidence.name, bytes, false)?);
        }
        for p in &packed {
            manifest.members.push(manifest::Member {
                name: p.member.name.clone(),
                bytes: p.member.bytes,
                sha256: p.sha256.clone(),
                method: p.member.method,
                crc32: p.member.crc,
                packed_bytes: p.member.packed,
                packed_sha256: sha256(&p.bytes),
            });
        }
        let mut text = vec![];
        json::write(&manifest, &mut text, json::Indented::default())?;
        text.push(b'\n');
        let mut archive = Archive::new(kind);
        archive.add(pack(kind, MANIFEST, &text, true)?)?;
        for p in packed {
            archive.add(p)?;
        }
        archive.add(pack(kind, MANIFEST_HASH, format!("{}\n", sha256(&text)).as_bytes(), true)?)?;
        let file = archive.finish()?;
        // First beside it, so that a bundle is never there in part.
        let path = self.trial_path();
        let output = self.order.output;
        let written = std::fs::write(&path, &file).and_then(|()| std::fs::rename(&path, output));
        written.with_context(|| self.cannot_write())?;
        Ok(Made { manifest, bytes: file.len() as u64, troubles: self.report.troubles.clone() })
    }

    fn originals(&self, redactor: &mut Redactor) -> anyhow::Result<Vec<manifest::Input>> {
        let mut all = vec![];
        for (f, info) in self.found.iter().zip(&self.report.inputs) {
            let opened = match (&f.source.packed, &f.source.path) {
                (Some(packed), _) => packed.opener.open(),
                (None, Some(path)) => std::fs::File::open(path).map(|f| Box::new(f) as Box<dyn Read + Send>),
                (None, None) => continue,
            };
            let hashed = opened.and_then(|mut bytes| hash(&mut bytes));
            let (bytes, sha256) = hashed.with_context(|| format!("{}: cannot be read", info.name))?;
            let (name, format) = (base_name(&info.name, redactor), info.format.clone());
            all.push(manifest::Input { name, format, bytes, sha256, records: info.records });
        }
        Ok(all)
    }
}

struct Trial {
    members: Vec<Member>,
    report: Report,
    redactor: Redactor,
    manifest: Manifest,
}

fn hash(from: &mut dyn Read) -> std::io::Result<(u64, String)> {
    use sha2::Digest;
    let mut digest = sha2::Sha256::new();
    let bytes = std::io::copy(from, &mut digest)?;
    Ok((bytes, super::hex(&digest.finalize())))
}

/// The command line as the manifest shows it: program, command and options by name, everything else cut
/// to its last part and redacted. A pattern says itself what nobody is to read.
fn command(line: &[String], redactor: &mut Redactor) -> Vec<String> {
    const PATTERN: &str = "PATTERN";
    let mut out = vec!["crosswire".to_owned()];
    for (before, arg) in line.iter().zip(line.iter().skip(1)) {
        out.push(match arg.split_once('=') {
            _ if before == "--redact" => PATTERN.to_owned(),
            Some(("--redact", _)) => format!("--redact={PATTERN}"),
            Some((name, value)) if arg.starts_with('-') => format!("{name}={}", base_name(value, redactor)),
            None if arg.starts_with('-') || (out.len() == 1 && arg == "bundle") => arg.clone(),
            _ => base_name(arg, redactor),
        });
    }
    out
}

/// What must be the same of a finding: rule, time, certainty, fault, and of each call method, tool
/// and id; and of a window all that its table shows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    rule: &'static str,
    at: String,
    standing: String,
    calls: Vec<(String, String, String)>,
}

fn findings(report: &Report) -> Vec<Claim> {
    let call = |key: &CallKey| {
        let call = report.calls.iter().find(|c| c.key == *key);
        let text = |t: Option<String>| t.unwrap_or_default();
        let method = text(call.and_then(|c| c.method.as_deref()).map(str::to_owned));
        let tool = text(call.and_then(|c| c.tool.as_deref()).map(str::to_owned));
        (method, tool, text(call.and_then(|c| c.id.as_ref()).map(ToString::to_string)))
    };
    let claim = |f: &crate::model::report::Finding| Claim {
        rule: f.rule,
        at: format!("{:?} {:?}", f.at.map(|t| t.to_string()), f.batch),
        standing: format!("{:?} {:?} {:?} {:?}", f.severity, f.confidence, f.fault, f.cleared),
        calls: f.calls.iter().map(call).collect(),
    };
    let window = |w: &crate::model::report::Window| Claim {
        rule: "window of a stale session",
        at: format!("{:?}", [w.opened, w.initialize, w.recovered, w.next_call].map(|t| t.map(|t| t.to_string()))),
        standing: format!("{:?} {:?}", w.cause, w.silence_s),
        calls: w.lost.iter().chain(&w.trigger_call).map(call).collect(),
    };
    let mut all: Vec<Claim> = report.findings.iter().map(claim).chain(report.windows.iter().map(window)).collect();
    all.sort();
    all
}

/// Does `all` hold everything in `some`, as often? Both are in order.
fn is_within(some: &[Claim], all: &[Claim]) -> bool {
    let mut rest = all.iter();
    some.iter().all(|claim| rest.any(|other| other == claim))
}

fn differing(wanted: &[Claim], got: &[Claim], what: &str) -> String {
    let list = |claims: Vec<&Claim>| claims.iter().map(|c| c.rule).collect::<Vec<_>>().join(", ");
    let lost: Vec<_> = wanted.iter().filter(|c| !got.contains(c)).collect();
    let new: Vec<_> = got.iter().filter(|c| !wanted.contains(c)).collect();
    format!(
        "no bundle was written: its findings would differ from those of the inputs after {what} (lost: {}; new: {}); --keep FIELD keeps what a field holds, --no-redact everything",
        list(lost),
        list(new)
    )
}

fn replaced(redactor: &Redactor) -> Vec<manifest::Replaced> {
    let of = |(kind, words): (&Kind, &rustc_hash::FxHashMap<String, u64>)| {
        (
            *kind,
            manifest::Replaced {
                kind: kind.name().to_owned(),
                different: words.len() as u64,
                times: words.values().sum(),
            },
        )
    };
    let mut all: Vec<_> = redactor.replaced().iter().map(of).collect();
    all.sort_by_key(|(kind, _)| *kind);
    all.into_iter().map(|(_, r)| r).collect()
}

fn kept(what: &str, mut list: Vec<String>) -> manifest::Kept {
    let words = list.len() as u64;
    if what == "numbers" {
        list.clear();
    }
    list.sort_unstable();
    manifest::Kept { what: what.to_owned(), words, list }
}

fn readme(manifest: &Manifest, report: &Report) -> String {
    let mut out = format!(
        "Evidence bundle of crosswire {}, made {}.\n\n\
         report.html, report.md and report.json are the report on the evidence in this bundle. To make it again:\n\n  \
         crosswire verify BUNDLE\n  crosswire analyze BUNDLE\n\n\
         The evidence is {}.\nCaptures were written anew as HTTP/1.1 in the clear, with the original times; comments of \
         the packets name the original frames. manifest.json names the original lines of logs, and the SHA-256 of \
         everything.\n\n{} findings\n\n",
        manifest.crosswire,
        manifest.created,
        manifest.scope,
        report.findings.len()
    );
    for (input, evidence) in manifest.evidence.iter().filter_map(|e| Some((manifest.inputs.get(e.input)?, e))) {
        out.push_str(&format!(
            "{}: from {}, {} bytes, SHA-256 {}\n",
            evidence.name, input.name, input.bytes, input.sha256
        ));
    }
    out.push('\n');
    out.push_str(&manifest.redaction.text());
    clean_block(&out, usize::MAX)
}
