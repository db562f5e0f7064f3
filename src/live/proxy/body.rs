//! A body on its way through: passed on piece by piece as it comes, and written down.

use super::transcript::Transcript;
use super::upstream::Lease;
use crate::model::exchange::Peer;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// A body as it is there.
pub(super) enum Source {
    /// It comes from a connection.
    Stream(Incoming),
    /// It is there.
    Whole(Full<Bytes>),
    /// Its beginning is there, the rest comes.
    Begun(Option<Bytes>, Incoming),
}

/// A body with what it keeps.
pub(super) struct Passing {
    inner: Source,
    from: Peer,
    transcript: Arc<Transcript>,
    /// The connection it comes from, free again at its end.
    lease: Option<Lease>,
}

impl Passing {
    pub(super) fn new(inner: Source, from: Peer, transcript: Arc<Transcript>, lease: Option<Lease>) -> Passing {
        let mut passing = Passing { inner, from, transcript, lease };
        if passing.is_end_stream() {
            passing.ended(None);
        }
        passing
    }

    fn ended(&mut self, trailers: Option<&hyper::HeaderMap>) {
        self.transcript.ended(self.from, trailers);
        if let Some(lease) = self.lease.take() {
            lease.give_back();
        }
    }
}

impl Body for Passing {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let polled = match &mut self.inner {
            Source::Stream(body) => ready!(Pin::new(body).poll_frame(cx)),
            Source::Whole(body) => ready!(Pin::new(body).poll_frame(cx)).map(|f| f.map_err(|never| match never {})),
            Source::Begun(first, rest) => match first.take() {
                Some(first) => Some(Ok(Frame::data(first))),
                None => ready!(Pin::new(rest).poll_frame(cx)),
            },
        };
        match &polled {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    self.transcript.data(self.from, data);
                }
                // After these nobody asks for the end again.
                if let Some(trailers) = frame.trailers_ref() {
                    self.ended(Some(trailers));
                } else if self.is_end_stream() {
                    self.ended(None);
                }
            }
            Some(Err(e)) if self.from == Peer::Server => self.transcript.server_left(super::is_reset(e)),
            Some(Err(_)) => {}
            None => self.ended(None),
        }
        Poll::Ready(polled)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Source::Stream(body) => body.size_hint(),
            Source::Whole(body) => body.size_hint(),
            // Only bodies of unknown length are begun.
            Source::Begun(..) => SizeHint::default(),
        }
    }
}

impl Source {
    /// Nothing (more) will come.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Source::Stream(body) => body.is_end_stream(),
            Source::Whole(body) => body.is_end_stream(),
            Source::Begun(first, rest) => first.is_none() && rest.is_end_stream(),
        }
    }
}
