//! What a store's client says, in words that name what was expected and what to do, and that hold no secret.
//!
//! The client's own texts are not passed on: they quote URLs with their signatures, and answers in which stores repeat
//! the key that was used and what was signed.

use super::address::Kind;
use super::shown;
use object_store::Error;
use std::io::{self, ErrorKind};

/// Letters of a message that are passed on.
const MOST: usize = 300;
/// How the client's text about an answer begins.
const ANSWER: &str = "Server returned non-2xx status code: ";

/// The status of the answer that this error tells of, if there was one.
pub fn status(e: &Error) -> Option<u16> {
    answer(e)?.get(..3)?.parse().ok()
}

/// The error in our words.
pub fn told(e: &Error, kind: Kind) -> io::Error {
    let said = said(e);
    match e {
        Error::NotFound { .. } => io::Error::new(ErrorKind::NotFound, format!("there is no such object ({said})")),
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => io::Error::new(
            ErrorKind::PermissionDenied,
            format!("the store denies access ({said}); {}", credentials(kind)),
        ),
        Error::NotSupported { .. } | Error::NotImplemented { .. } => io::Error::new(ErrorKind::Unsupported, said),
        Error::InvalidPath { .. } => io::Error::new(
            ErrorKind::Unsupported,
            "its key holds an empty part, . or .., which are not read; copy the object to a file first",
        ),
        _ => io::Error::other(format!("{said}{}", advice(&said, kind))),
    }
}

/// What was answered (`403 Forbidden, AccessDenied`), or what broke.
fn said(e: &Error) -> String {
    let Some(answer) = answer(e) else { return cleaned(&deepest(e).to_string()) };
    let (status, body) = answer.split_once(": ").unwrap_or((&answer, ""));
    // Of the rest of the answer nothing is safe.
    let code = body.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>")).map(|(code, _)| code);
    let code = code.filter(|c| c.len() < 64 && c.bytes().all(|b| b.is_ascii_alphanumeric()));
    let code = code.map_or(String::new(), |c| format!(", {c}"));
    cleaned(&format!("{}{code}", status.trim_end_matches(':').trim()))
}

/// The part of the client's text that begins with the status of the answer.
fn answer(e: &Error) -> Option<String> {
    let mut at: Option<&dyn std::error::Error> = Some(e);
    while let Some(e) = at {
        if let Some(rest) = e.to_string().strip_prefix(ANSWER) {
            return Some(rest.to_owned());
        }
        at = e.source();
    }
    None
}

fn deepest(e: &Error) -> &dyn std::error::Error {
    let mut at: &dyn std::error::Error = e;
    while let Some(source) = at.source() {
        at = source;
    }
    at
}

fn credentials(kind: Kind) -> &'static str {
    match kind {
        Kind::S3 => {
            "expected credentials that may read it in AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN (profiles: \
             `aws configure export-credentials --format env`), or AWS_SKIP_SIGNATURE=true for what is public"
        }
        Kind::Google => {
            "expected a key file that may read it in GOOGLE_APPLICATION_CREDENTIALS, `gcloud auth application-default login`, or \
             GOOGLE_SKIP_SIGNATURE=true for what is public"
        }
        Kind::Azure => {
            "expected AZURE_STORAGE_ACCOUNT_NAME with AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN that may read it, or \
             AZURE_SKIP_SIGNATURE=true for what is public"
        }
        Kind::Web => {
            "expected a URL that may be read from here: one that was signed and is still valid, or https://USER:PASSWORD@HOST/PATH"
        }
    }
}

/// What to do about what broke, where that is known.
fn advice(said: &str, kind: Kind) -> String {
    let text = said.to_ascii_lowercase();
    let (allow, endpoint) = match kind {
        Kind::S3 => ("AWS_ALLOW_HTTP=true", "AWS_ENDPOINT_URL"),
        Kind::Google => ("GOOGLE_ALLOW_HTTP=true", "GOOGLE_BASE_URL"),
        Kind::Azure => ("AZURE_ALLOW_HTTP=true", "AZURE_STORAGE_ENDPOINT"),
        Kind::Web => ("", ""),
    };
    if text.contains("scheme is not allowed") {
        return format!("; {endpoint} is http://: {allow} allows requests that are not encrypted");
    }
    if text.contains("content-length") {
        return "; expected a server that says how long a file is; download it and name the copy".into();
    }
    if text.contains("region") && kind == Kind::S3 {
        return "; AWS_REGION says where a bucket is".into();
    }
    // Answered by who gives credentials to machines, not by the store.
    if said.starts_with("401") || said.starts_with("403") || (text.contains("account") && kind == Kind::Azure) {
        return format!("; {}", credentials(kind));
    }
    let has_key = ["AWS_ACCESS_KEY_ID", "AWS_SKIP_SIGNATURE"].iter().any(|name| std::env::var_os(name).is_some());
    if kind == Kind::S3 && !has_key && answer_free(said) {
        return format!("; {}", credentials(kind));
    }
    String::new()
}

/// Did something break, rather than answer?
fn answer_free(said: &str) -> bool {
    !said.starts_with(|c: char| c.is_ascii_digit())
}

/// A text that may hold a URL or a secret, without it, and short.
fn cleaned(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|w| !w.is_empty());
    let mut out = words.map(without_secret).collect::<Vec<_>>().join(" ");
    let names = ["KEY", "SECRET", "TOKEN", "PASSWORD", "SAS", "CREDENTIAL", "ACCOUNT"];
    for (name, value) in std::env::vars_os() {
        let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
        let is_store = ["AWS_", "GOOGLE_", "AZURE_"].iter().any(|p| name.starts_with(p));
        if is_store && value.len() >= 6 && names.iter().any(|n| name.contains(n)) {
            out = out.replace(value.as_ref(), "…");
        }
    }
    if let Some((end, _)) = out.char_indices().nth(MOST) {
        out.truncate(end);
        out.push('…');
    }
    out
}

/// Whatever scheme a word's URL has, its query is cut.
fn without_secret(word: &str) -> String {
    match word.find("://") {
        Some(_) => shown(word.split('?').next().unwrap_or_default()),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{cleaned, said, status, told};
    use crate::input::objects::address::Kind;
    use object_store::Error;

    #[derive(Debug, thiserror::Error)]
    #[error("Error performing GET https://h/k?X-Amz-Signature=c2VjcmV0 in 3ms - {0}")]
    struct Outer(#[source] Inner);

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Inner(String);

    #[test]
    fn only_the_status_and_the_code_of_an_answer_are_told() {
        let body = "<Error><Code>SignatureDoesNotMatch</Code><AWSAccessKeyId>AKIASECRET</AWSAccessKeyId></Error>";
        let inner = Inner(format!("Server returned non-2xx status code: 403 Forbidden: {body}"));
        let e = Error::PermissionDenied { path: "k".into(), source: Box::new(Outer(inner)) };
        assert_eq!((status(&e), said(&e).as_str()), (Some(403), "403 Forbidden, SignatureDoesNotMatch"));
        let text = told(&e, Kind::S3).to_string();
        assert!(text.contains("AWS_ACCESS_KEY_ID") && !text.contains("AKIA") && !text.contains("c2VjcmV0"), "{text}");
    }

    #[test]
    fn texts_lose_their_secrets() {
        let text = "error for\nurl (https://me:c2VjcmV0@h/k?sig=c2VjcmV0) s3://b/k?x=c2VjcmV0";
        assert_eq!(cleaned(text), "error for url (https://h/k s3://b/k");
        assert_eq!(cleaned(&"long ".repeat(200)).chars().count(), 301);
    }
}
