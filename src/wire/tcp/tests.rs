//! Segments in every order, split and state through reassembly.
