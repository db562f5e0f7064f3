//! Evidence bundles as inputs: what their manifest says of the evidence in them, and how it is to be
//! read. `evidence` writes and verifies them.

use super::container::{Container, is_bundle};
use super::open::{InputError, Source};
use super::packed::{Opener, Packed};
use super::zip::ArchiveError;
use crate::model::limits::BUNDLE_MEMBER_BYTES;
use crate::model::options::ReadOptions;
use crate::model::place::Vantage;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// Name of the manifest in a bundle.
pub const MANIFEST: &str = "manifest.json";
/// Its schema.
pub const SCHEMA: &str = "crosswire.bundle/1";

/// A piece of evidence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Name of the member.
    pub name: String,
    /// Number of the original input, from 0 in the manifest's `inputs`.
    pub input: usize,
    /// Format that it is to be read as.
    pub format: String,
    /// Vantage that the user gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vantage: Option<Vantage>,
    /// Last modification of the original, ns since the epoch, for years that are not in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified_ns: Option<i64>,
    /// Lines (or entries) of the original that it holds, first and last of each run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<(u64, u64)>,
}

/// How the evidence is to be read, where it does not say itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// `--tz`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tz: Option<String>,
    /// `--year`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub year: Option<i32>,
    /// `--client-timeout`, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_timeout_ns: Option<i64>,
    /// `--endpoint`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// `--log-format STRING`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_format: Option<String>,
    /// `--log-format NAME=STRING`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log_formats: Vec<(String, String)>,
}

/// What of a manifest matters for reading.
#[derive(Debug, Deserialize)]
struct Manifest {
    schema: String,
    evidence: Vec<Evidence>,
    #[serde(default)]
    reading: Reading,
}

struct Bytes(Arc<[u8]>);

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Opener for Bytes {
    fn open(&self) -> std::io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(std::io::Cursor::new(self.0.clone())))
    }
}

/// The evidence in the file called `name`; none if it is no bundle.
///
/// # Errors
/// Where it is an archive that cannot be read as a bundle.
pub fn sources(name: &str) -> Option<Result<Vec<Source>, InputError>> {
    let path = Path::new(name);
    if !is_bundle(path, MANIFEST) {
        return None;
    }
    let bad = |why: String| InputError::Bundle { name: name.to_owned(), why };
    Some(open(path).map_err(|e| bad(e.to_string())).and_then(|(archive, manifest)| {
        let mut all = vec![];
        for evidence in manifest.evidence {
            let bytes = archive.read(&evidence.name).map_err(|e| bad(e.to_string()))?;
            let bytes = bytes.ok_or_else(|| bad(format!("{} is missing", evidence.name)))?;
            let packed = Packed {
                member: evidence.name.clone(),
                modified_ns: evidence.modified_ns,
                opener: Arc::new(Bytes(bytes.into())),
            };
            all.push(Source {
                name: full(name, &evidence.name),
                path: Some(path.to_owned()),
                found: false,
                packed: Some(packed),
            });
        }
        Ok(all)
    }))
}

fn full(bundle: &str, member: &str) -> String {
    format!("{bundle}!{member}")
}

fn open(path: &Path) -> Result<(Container, Manifest), ArchiveError> {
    let damaged = |why: String| ArchiveError::Damaged(why);
    let mut bytes = vec![];
    let file = File::open(path).map_err(|e| damaged(e.to_string()))?;
    file.take(BUNDLE_MEMBER_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|e| damaged(e.to_string()))?;
    let archive = Container::new(bytes)?;
    let text = archive
        .read(MANIFEST)?
        .ok_or_else(|| damaged("an archive without the manifest of an evidence bundle".to_owned()))?;
    let manifest: Manifest = serde_json::from_slice(&text).map_err(|e| damaged(format!("{MANIFEST}: {e}")))?;
    if manifest.schema != SCHEMA {
        return Err(damaged(format!("its manifest is {}, expected {SCHEMA}", manifest.schema)));
    }
    Ok((archive, manifest))
}

/// The options with what the manifests of bundles among `inputs` say where the user does not.
pub fn options(inputs: &[String], given: &ReadOptions) -> ReadOptions {
    let mut options = given.clone();
    for name in inputs.iter().filter(|name| is_bundle(Path::new(name), MANIFEST)) {
        let Ok((_, manifest)) = open(Path::new(name)) else { continue };
        let Reading { tz, year, client_timeout_ns, endpoint, log_format, log_formats } = manifest.reading;
        options.tz = options.tz.or(tz.and_then(|tz| tz.parse().ok()));
        options.year = options.year.or(year);
        options.client_timeout_ns = options.client_timeout_ns.or(client_timeout_ns);
        options.endpoint = options.endpoint.or(endpoint);
        options.log_format = options.log_format.or(log_format);
        options.log_formats.extend(log_formats);
        for evidence in manifest.evidence {
            let member = full(name, &evidence.name);
            if let Some(vantage) = evidence.vantage {
                options.vantages.push((vantage, member.clone()));
            }
            if !evidence.format.is_empty() {
                options.input_formats.push((evidence.format, member));
            }
        }
    }
    options
}
