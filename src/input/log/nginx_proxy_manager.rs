//! Nginx Proxy Manager's two access-log formats.

use super::assemble::Shared;
use super::format_nginx;
use super::layout::{self, Layout, LayoutReader, Parsed};
use super::template::Template;
use super::{Format, Grade, Reader};
use crate::model::place::{Place, Vantage};

/// The format.
pub(super) static FORMAT: Format = Format {
    name: "nginx-proxy-manager",
    vantage: Vantage::Proxy,
    carries: false,
    doc: "Nginx Proxy Manager's access logs (`proxy` and `standard` of its nginx.conf). The time is the end of the \
          request, to the second; there is no duration.",
    samples: &[
        "[29/Nov/2026:19:55:22 +0000] - 200 200 - POST https mcp.trailhead.example \"/mcp\" [Client 192.0.2.9] [Length 414] \
         [Gzip -] [Sent-to 10.0.0.15] \"connector-egress/1.4\" \"-\"\n\
         [29/Nov/2026:19:55:23 +0000] 404 - GET https mcp.trailhead.example \"/.well-known/x\" [Client 192.0.2.9] [Length 169] \
         [Gzip 3.12] \"connector-egress/1.4\" \"-\"\n",
    ],
    grade: |head| layout::share(head, &mut ManagerLog::new()).grade(Grade::Certain),
    reader: Reader::Lines(|context| LayoutReader::boxed(context, Box::new(ManagerLog::new()))),
};

/// `log_format proxy` and `log_format standard` of its docker/rootfs/etc/nginx/conf.d/include.
const FORMATS: [&str; 2] = [
    "[$time_local] $upstream_cache_status $upstream_status $status - $request_method $scheme $host \"$request_uri\" \
     [Client $remote_addr] [Length $body_bytes_sent] [Gzip $gzip_ratio] [Sent-to $server] \"$http_user_agent\" \
     \"$http_referer\"",
    "[$time_local] $status - $request_method $scheme $host \"$request_uri\" [Client $remote_addr] \
     [Length $body_bytes_sent] [Gzip $gzip_ratio] \"$http_user_agent\" \"$http_referer\"",
];

/// A line of either.
pub(super) struct ManagerLog {
    formats: Vec<Template>,
}

impl ManagerLog {
    pub(super) fn new() -> ManagerLog {
        let compiled = FORMATS.iter().filter_map(|f| format_nginx::compile(f).ok());
        ManagerLog { formats: compiled.map(Template::new).collect() }
    }
}

impl Layout for ManagerLog {
    fn parse(&mut self, line: &[u8], place: Place, shared: &mut Shared) -> Parsed {
        if line.first() != Some(&b'[') || memchr::memmem::find(line, b" [Client ").is_none() {
            return Parsed::No;
        }
        for format in &mut self.formats {
            if let found @ (Parsed::Access(_) | Parsed::Quiet(_)) = format.parse(line, place, shared) {
                return found;
            }
        }
        Parsed::Bad("a line that fits neither of Nginx Proxy Manager's formats")
    }
}
