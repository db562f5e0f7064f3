//! A web server and a store that speaks as much of S3 as is read of it, over a folder, without anything but `std`.
//! `/BUCKET/…` needs a signature, is listed in pages of two, and is the folder; `/web/…` is the same folder to anybody,
//! `/dav/…` too and can be listed, `/signed/…` to who has the signature, and only by GET.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

pub const BUCKET: &str = "logs";
pub const SIGNATURE: &str = "c2lnbmF0dXJlLW9mLXRoZS11cmw";
const PAGE: usize = 2;

/// What goes wrong with a key, and how many more times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An answer with this status.
    Status(u16, usize),
    /// The connection ends after so many bytes of the body.
    Cut(usize, usize),
    /// After so many GETs it may not be read any more.
    Late(usize),
    /// Parts cannot be asked for.
    NoRange,
    /// Neither the time nor the tag is said.
    Bare,
}

#[derive(Default)]
pub struct State {
    /// By key; of a fault with a number, as long as it is not 0.
    pub faults: BTreeMap<String, Fault>,
    /// Requests so far: method, path, range.
    pub asked: Vec<(String, String, Option<String>)>,
}

pub struct Server {
    pub address: SocketAddr,
    pub state: Arc<Mutex<State>>,
}

impl Server {
    /// Serves what is in `folder` at the time of each request.
    pub fn start(folder: &Path) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, state) = (listener.local_addr().unwrap(), Arc::<Mutex<State>>::default());
        let (folder, shared) = (folder.to_owned(), state.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                stream.set_nodelay(true).unwrap();
                let (folder, shared) = (folder.clone(), shared.clone());
                std::thread::spawn(move || while one(&stream, &folder, &shared).unwrap_or(false) {});
            }
        });
        Server { address, state }
    }

    pub fn fault(&self, key: &str, fault: Fault) {
        self.state.lock().unwrap().faults.insert(key.into(), fault);
    }

    pub fn heal(&self) {
        self.state.lock().unwrap().faults.clear();
    }

    /// The keys that were asked for since the last call, by GET.
    pub fn gets(&self) -> Vec<String> {
        let asked = std::mem::take(&mut self.state.lock().unwrap().asked);
        asked.into_iter().filter(|(m, p, _)| m == "GET" && !p.contains("list-type")).map(|(_, p, _)| p).collect()
    }
}

struct Request {
    method: String,
    path: String,
    query: String,
    range: Option<String>,
    is_signed: bool,
}

/// Answers one request; is there to be another?
fn one(stream: &TcpStream, folder: &Path, state: &Mutex<State>) -> std::io::Result<bool> {
    let mut reader = BufReader::new(stream);
    let Some(request) = read(&mut reader)? else { return Ok(false) };
    let path = format!("{}?{}", request.path, request.query);
    state.lock().unwrap().asked.push((request.method.clone(), path, request.range.clone()));
    let (area, key) =
        request.path.trim_start_matches('/').split_once('/').unwrap_or((request.path.trim_matches('/'), ""));
    let denied = "<Error><Code>AccessDenied</Code><AWSAccessKeyId>AKIAEXAMPLE</AWSAccessKeyId></Error>";
    if area == BUCKET && !request.is_signed {
        return answer(stream, &request, 403, "", denied.as_bytes());
    }
    if area == "signed" && (request.method != "GET" || !request.query.contains(SIGNATURE)) {
        return answer(stream, &request, 403, "", denied.as_bytes());
    }
    if request.method == "PROPFIND" {
        return match area {
            "dav" => answer(stream, &request, 207, "", dav(folder).as_bytes()),
            _ => answer(stream, &request, 405, "", b""),
        };
    }
    if area == BUCKET && request.query.contains("list-type=2") {
        return answer(stream, &request, 200, "", page(folder, &request.query).as_bytes());
    }
    object(stream, &request, folder, &decoded(key), state)
}

fn read(reader: &mut impl BufRead) -> std::io::Result<Option<Request>> {
    let mut first = String::new();
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let mut words = first.split_whitespace().map(str::to_owned);
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let (path, query) = (path.to_owned(), query.to_owned());
    let mut request = Request { method, path, query, range: None, is_signed: false };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { return Ok(Some(request)) };
        match name.to_ascii_lowercase().as_str() {
            "range" => request.range = Some(value.to_owned()),
            "authorization" => request.is_signed = value.starts_with("AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/"),
            _ => {}
        }
    }
}

fn object(
    stream: &TcpStream,
    request: &Request,
    folder: &Path,
    key: &str,
    state: &Mutex<State>,
) -> std::io::Result<bool> {
    let fault = fault(state, key, request);
    if let Some(Fault::Status(status, _)) = fault {
        return answer(stream, request, status, "", b"<Error><Code>SlowDown</Code></Error>");
    }
    let path = folder.join(key);
    let Ok(bytes) = fs::read(&path) else {
        return answer(stream, request, 404, "", b"<Error><Code>NoSuchKey</Code></Error>");
    };
    let known =
        format!("ETag: \"{}\"\r\nLast-Modified: {}\r\n", tag(&bytes), modified(&path, "%a, %d %b %Y %H:%M:%S GMT"));
    let mut headers = if fault == Some(Fault::Bare) { String::new() } else { known };
    let (mut status, mut part) = (200, &bytes[..]);
    if let Some(range) = request.range.as_ref().filter(|_| fault != Some(Fault::NoRange)) {
        let (from, to) = range.trim_start_matches("bytes=").split_once('-').unwrap();
        let from: usize = from.parse().unwrap();
        let to = to.parse().map_or(bytes.len(), |to: usize| to + 1).min(bytes.len());
        headers += &format!("Content-Range: bytes {from}-{}/{}\r\n", to - 1, bytes.len());
        (status, part) = (206, &bytes[from..to]);
    }
    if let Some(Fault::Cut(after, _)) = fault.filter(|_| request.method == "GET" && part.len() > 4) {
        let head = format!("HTTP/1.1 {status} Some\r\n{headers}Content-Length: {}\r\n\r\n", part.len());
        let mut stream = stream;
        stream.write_all(head.as_bytes())?;
        stream.write_all(&part[..after.min(part.len() - 1)])?;
        stream.flush()?;
        stream.shutdown(std::net::Shutdown::Both)?;
        return Ok(false);
    }
    answer(stream, request, status, &headers, part)
}

/// What goes wrong with this request, counted down.
fn fault(state: &Mutex<State>, key: &str, request: &Request) -> Option<Fault> {
    let mut state = state.lock().unwrap();
    let fault = state.faults.get_mut(key)?;
    let now = *fault;
    match fault {
        Fault::Cut(_, 0) | Fault::Status(_, 0) => return None,
        Fault::Cut(_, left) if request.method == "GET" => *left -= 1,
        Fault::Status(_, left) => *left -= 1,
        Fault::Late(0) => return Some(Fault::Status(403, 1)),
        Fault::Late(left) if request.method == "GET" => *left -= 1,
        _ => {}
    }
    Some(now)
}

fn answer(mut stream: &TcpStream, request: &Request, status: u16, headers: &str, body: &[u8]) -> std::io::Result<bool> {
    let head = format!("HTTP/1.1 {status} Some\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes())?;
    if request.method != "HEAD" {
        stream.write_all(body)?;
    }
    stream.flush()?;
    Ok(true)
}

/// All files below the folder, by key, in order.
fn keys(folder: &Path) -> BTreeMap<String, PathBuf> {
    let (mut out, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(at) = folders.pop() {
        for path in fs::read_dir(at).unwrap().map(|e| e.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                out.insert(path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned(), path);
            }
        }
    }
    out
}

/// ListObjectsV2.
fn page(folder: &Path, query: &str) -> String {
    let parameter = |name: &str| {
        let found = query.split('&').find_map(|p| p.strip_prefix(name)?.strip_prefix('='));
        decoded(found.unwrap_or_default())
    };
    let (prefix, after) = (parameter("prefix"), parameter("continuation-token"));
    let left: Vec<_> = keys(folder).into_iter().filter(|(k, _)| k.starts_with(&prefix) && *k > after).collect();
    let mut out = String::from("<?xml version=\"1.0\"?><ListBucketResult>");
    for (key, path) in left.iter().take(PAGE) {
        let bytes = fs::read(path).unwrap();
        let time = modified(path, "%Y-%m-%dT%H:%M:%S.000Z");
        out += &format!(
            "<Contents><Key>{key}</Key><LastModified>{time}</LastModified><ETag>&quot;{}&quot;</ETag><Size>{}</Size></Contents>",
            tag(&bytes),
            bytes.len()
        );
    }
    let is_more = left.len() > PAGE;
    if is_more {
        out += &format!("<NextContinuationToken>{}</NextContinuationToken>", left[PAGE - 1].0);
    }
    out + &format!("<IsTruncated>{is_more}</IsTruncated></ListBucketResult>")
}

/// The answer to PROPFIND (RFC 4918, 9.1), of all there is.
fn dav(folder: &Path) -> String {
    let mut out = String::from("<?xml version=\"1.0\"?><D:multistatus xmlns:D=\"DAV:\">");
    for (key, path) in keys(folder) {
        let (length, time) = (fs::metadata(&path).unwrap().len(), modified(&path, "%a, %d %b %Y %H:%M:%S GMT"));
        out += &format!(
            "<D:response><D:href>/dav/{key}</D:href><D:propstat><D:prop><D:getcontentlength>{length}</D:getcontentlength>\
             <D:getlastmodified>{time}</D:getlastmodified><D:resourcetype/></D:prop><D:status>HTTP/1.1 200 OK</D:status>\
             </D:propstat></D:response>"
        );
    }
    out + "</D:multistatus>"
}

fn tag(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

fn modified(path: &Path, format: &str) -> String {
    let time = fs::metadata(path).unwrap().modified().unwrap();
    chrono::DateTime::<chrono::Utc>::from(time).format(format).to_string()
}

fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut out = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        out.push(u8::from_str_radix(&part[..2], 16).unwrap());
        out.extend(&part.as_bytes()[2..]);
    }
    String::from_utf8(out).unwrap()
}
