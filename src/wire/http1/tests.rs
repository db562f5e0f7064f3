//! Whole connections through the HTTP/1 parser, in every split and from either end.
