//! The stores themselves, by `object_store`, for a program that waits.

use super::address::{Address, Kind};
use super::errors::told;
use super::object::{Facts, Remote};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::path::Path;
use object_store::{
    ClientConfigKey, ClientOptions, GetOptions, GetRange, GetResult, HeaderMap, HeaderValue, ObjectMeta, ObjectStore,
    RetryConfig,
};
use reqwest::Url;
use std::collections::HashMap;
use std::future::Future;
use std::io::{self, ErrorKind, Read};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::runtime::Runtime;

/// Without a byte for so long a connection is given up.
const SILENCE: Duration = Duration::from_secs(30);
/// A request, with the client's attempts at it, takes no longer.
const REQUEST: Duration = Duration::from_secs(180);
/// Attempts of the client at a request, after the first.
const RETRIES: usize = 4;
/// How long it attempts.
const RETRYING: Duration = Duration::from_secs(60);

/// A store, and a place in it.
#[derive(Clone, Debug)]
pub struct Place {
    /// The store.
    pub store: Arc<dyn ObjectStore>,
    /// The object, or what is above objects.
    pub path: Path,
    /// Which kind of store.
    pub kind: Kind,
}

impl Place {
    /// Where an address points.
    ///
    /// # Errors
    /// If the environment does not say how to reach the store, or the key cannot be read.
    pub fn of(address: &Address) -> io::Result<Place> {
        let kind = address.kind;
        let path = match kind {
            Kind::Web => Path::from_url_path(&address.key),
            _ => Path::parse(&address.key),
        };
        if kind == Kind::Web && !path.as_ref().is_ok_and(|path| address.query.is_none() && is_at(address, path)) {
            // What a path of parts cannot say is asked for as it was written.
            return Ok(Place { store: build(kind, &address.whole())?, path: Path::default(), kind });
        }
        let path = path.map_err(|e| told(&e.into(), kind))?;
        Ok(Place { store: cached(kind, &address.store)?, path, kind })
    }

    /// What the store says of the object here.
    ///
    /// # Errors
    /// If it is not there, or may not be read.
    pub fn facts(&self) -> io::Result<Facts> {
        let head = GetOptions { head: true, ..GetOptions::default() };
        let e = match wait(REQUEST, self.store.get_opts(&self.path, head))? {
            Ok(result) => return Ok(facts(&result.meta)),
            Err(e) => e,
        };
        // A signed URL is signed for one method, and not every server knows HEAD.
        let is_refused = super::errors::status(&e).is_some_and(|status| status != 404);
        if self.kind == Kind::Web && is_refused {
            return self.get(None).map(|result| facts(&result.meta));
        }
        Err(told(&e, self.kind))
    }

    /// Everything below, as it is listed, page by page.
    pub fn below(&self) -> impl Iterator<Item = io::Result<ObjectMeta>> + use<> {
        let path = Some(&self.path).filter(|p| !p.is_root());
        let (mut stream, kind) = (self.store.list(path), self.kind);
        std::iter::from_fn(move || match wait(REQUEST, stream.next()) {
            Ok(next) => next.map(|meta| meta.map_err(|e| told(&e, kind))),
            Err(e) => Some(Err(e)),
        })
    }

    fn get(&self, range: Option<GetRange>) -> io::Result<GetResult> {
        let options = GetOptions { range, ..GetOptions::default() };
        wait(REQUEST, self.store.get_opts(&self.path, options))?.map_err(|e| told(&e, self.kind))
    }
}

/// Does the path stand for exactly this URL?
fn is_at(address: &Address, path: &Path) -> bool {
    Url::parse(&address.whole()).ok().is_some_and(|whole| url(&address.store, path) == Some(whole))
}

/// The URL of a file of a web server.
pub fn url(store: &str, path: &Path) -> Option<Url> {
    let mut url = Url::parse(store).ok()?;
    url.path_segments_mut().ok()?.extend(path.parts().map(|p| p.as_ref().to_owned()));
    Some(url)
}

/// What a listing or an answer says of an object.
pub fn facts(meta: &ObjectMeta) -> Facts {
    // A server that says no time is given the first there is.
    let modified_ns = meta.last_modified.timestamp_nanos_opt().filter(|ns| *ns > 0);
    let tag = meta.e_tag.as_ref().map(|tag| tag.trim_start_matches("W/").trim_matches('"').to_owned());
    Facts { bytes: meta.size, modified_ns, tag: tag.filter(|t| !t.is_empty()) }
}

/// An object in a store: found there, or to be looked for when it is first read.
#[derive(Debug)]
pub enum Stored {
    /// It was found.
    Here(Place),
    /// Only its address is known.
    At(Address),
}

impl Remote for Stored {
    fn open(&self, known: &Facts, from: u64, to: Option<u64>) -> io::Result<Box<dyn Read + Send>> {
        let place = match self {
            Stored::Here(place) => place.clone(),
            Stored::At(address) => Place::of(address)?,
        };
        let range = match (from, to) {
            (0, None) => None,
            (_, None) => Some(GetRange::Offset(from)),
            (_, Some(to)) => Some(GetRange::Bounded(from..to)),
        };
        let is_part = range.is_some();
        let result = place.get(range).map_err(|e| match place.kind {
            Kind::Web if is_part && e.to_string().contains("ange") => io::Error::new(
                ErrorKind::Unsupported,
                "the server does not serve parts of files, which archives and broken connections need; download it and name the copy",
            ),
            _ => e,
        })?;
        let now = facts(&result.meta);
        let has_other_tag = now.tag.as_ref().zip(known.tag.as_ref()).is_some_and(|(a, b)| a != b);
        if now.bytes != known.bytes || has_other_tag {
            let text =
                format!("it changed since it was looked at ({} bytes then, {} now); try again", known.bytes, now.bytes);
            return Err(io::Error::new(ErrorKind::InvalidData, text));
        }
        Ok(Box::new(Streaming { stream: result.into_stream(), chunk: Bytes::new(), kind: place.kind }))
    }
}

/// The body of an answer.
struct Streaming {
    stream: BoxStream<'static, object_store::Result<Bytes>>,
    chunk: Bytes,
    kind: Kind,
}

impl Read for Streaming {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.chunk.is_empty() {
            match wait(REQUEST, self.stream.next())? {
                None => return Ok(0),
                Some(Ok(chunk)) => self.chunk = chunk,
                Some(Err(e)) => return Err(told(&e, self.kind)),
            }
        }
        let n = self.chunk.len().min(out.len());
        let chunk = self.chunk.split_to(n);
        if let Some(space) = out.get_mut(..n) {
            space.copy_from_slice(&chunk);
        }
        Ok(n)
    }
}

/// Stores are built once: each has its connections.
fn cached(kind: Kind, store: &str) -> io::Result<Arc<dyn ObjectStore>> {
    static STORES: OnceLock<Mutex<HashMap<String, Arc<dyn ObjectStore>>>> = OnceLock::new();
    let mut stores = STORES.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = stores.get(store) {
        return Ok(known.clone());
    }
    let built = build(kind, store)?;
    stores.insert(store.to_owned(), built.clone());
    Ok(built)
}

fn build(kind: Kind, store: &str) -> io::Result<Arc<dyn ObjectStore>> {
    // Its clients take the provider of the process.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let _inside = runtime()?.enter();
    let built = match kind {
        Kind::S3 => s3(bucket(store)),
        Kind::Google => google(bucket(store)),
        Kind::Azure => azure(store),
        Kind::Web => web(store),
    };
    built.map_err(|e| told(&e, kind))
}

type Built = object_store::Result<Arc<dyn ObjectStore>>;

fn s3(bucket: &str) -> Built {
    let [(timeout, whole), (silence, quiet)] = patience();
    let builder = AmazonS3Builder::from_env()
        .with_bucket_name(bucket)
        .with_config(AmazonS3ConfigKey::Client(timeout), whole)
        .with_config(AmazonS3ConfigKey::Client(silence), quiet);
    Ok(Arc::new(builder.with_retry(retry()).build()?))
}

fn google(bucket: &str) -> Built {
    let [(timeout, whole), (silence, quiet)] = patience();
    let builder = GoogleCloudStorageBuilder::from_env();
    let allow = builder.get_config_value(&GoogleConfigKey::Client(ClientConfigKey::AllowHttp));
    let options = as_stored().with_config(ClientConfigKey::AllowHttp, allow.unwrap_or_else(|| "false".into()));
    let builder = builder
        .with_client_options(options)
        .with_bucket_name(bucket)
        .with_config(GoogleConfigKey::Client(timeout), whole)
        .with_config(GoogleConfigKey::Client(silence), quiet);
    Ok(Arc::new(builder.with_retry(retry()).build()?))
}

fn azure(store: &str) -> Built {
    let [(timeout, whole), (silence, quiet)] = patience();
    let builder = MicrosoftAzureBuilder::from_env()
        .with_url(format!("{store}/"))
        .with_config(AzureConfigKey::Client(timeout), whole)
        .with_config(AzureConfigKey::Client(silence), quiet);
    Ok(Arc::new(builder.with_retry(retry()).build()?))
}

fn web(store: &str) -> Built {
    let [(timeout, whole), (silence, quiet)] = patience();
    let builder = HttpBuilder::new()
        .with_url(store)
        .with_client_options(ClientOptions::new().with_allow_http(true))
        .with_config(timeout, whole)
        .with_config(silence, quiet);
    Ok(Arc::new(builder.with_retry(retry()).build()?))
}

fn bucket(store: &str) -> &str {
    store.split_once("://").map_or(store, |(_, bucket)| bucket)
}

/// A large object takes as long as it takes, and as long as what is done with it; silence is not waited for.
fn patience() -> [(ClientConfigKey, String); 2] {
    [(ClientConfigKey::Timeout, "365days".into()), (ClientConfigKey::ReadTimeout, format!("{}s", SILENCE.as_secs()))]
}

fn retry() -> RetryConfig {
    RetryConfig { max_retries: RETRIES, retry_timeout: RETRYING, ..RetryConfig::default() }
}

/// Objects that are stored compressed are sent as they are stored.
fn as_stored() -> ClientOptions {
    let mut headers = HeaderMap::new();
    headers.insert("accept-encoding", HeaderValue::from_static("gzip"));
    ClientOptions::new().with_default_headers(headers)
}

/// Connections live on a thread of their own; whoever reads waits.
fn runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<io::Result<Runtime>> = OnceLock::new();
    let made = RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).thread_name("objects").enable_all().build()
    });
    made.as_ref().map_err(|e| io::Error::other(e.to_string()))
}

fn wait<T>(most: Duration, future: impl Future<Output = T>) -> io::Result<T> {
    let waited = runtime()?.block_on(async { tokio::time::timeout(most, future).await });
    waited.map_err(|_| io::Error::new(ErrorKind::TimedOut, format!("no answer within {} s", most.as_secs())))
}
