//! Writing captures: packets that carry given bytes, and the blocks of a pcapng file. What records
//! sockets, what cuts evidence and what captures live all write through here.

pub mod blocks;
pub mod packets;
