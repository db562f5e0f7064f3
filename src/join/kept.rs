//! Exchanges kept to the end, in blocks: one list would be copied whenever it grew, and again for each that has to
//! leave at its front.

use crate::mcp::Visit;
use std::collections::VecDeque;

/// Exchanges of one block.
const BLOCK: usize = 1024;

/// What is kept, in the order in which it came.
#[derive(Default)]
pub(super) struct Kept {
    /// All but the last are full, or were once.
    blocks: VecDeque<VecDeque<Visit>>,
    len: usize,
}

impl Kept {
    pub(super) fn push(&mut self, visit: Visit) {
        self.len += 1;
        match self.blocks.back_mut() {
            Some(block) if block.len() < BLOCK => block.push_back(visit),
            _ => {
                let mut block = VecDeque::with_capacity(BLOCK);
                block.push_back(visit);
                self.blocks.push_back(block);
            }
        }
    }

    /// Takes the first out, if there are more than `most`.
    pub(super) fn excess(&mut self, most: usize) -> Option<Visit> {
        if self.len <= most {
            return None;
        }
        let block = self.blocks.front_mut()?;
        let visit = block.pop_front();
        if block.is_empty() {
            self.blocks.pop_front();
        }
        self.len -= usize::from(visit.is_some());
        visit
    }

    /// Appends all to `out`.
    pub(super) fn append_to(self, out: &mut Vec<Visit>) {
        out.reserve(self.len);
        self.blocks.into_iter().for_each(|block| out.extend(block));
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::place::{Place, Vantage};
    use crate::model::record::When;
    use crate::model::time::Time;

    fn numbers(kept: Kept) -> Vec<u64> {
        let mut out = vec![];
        kept.append_to(&mut out);
        out.iter().map(|v| v.exchange).collect()
    }

    #[test]
    fn the_first_leave_and_the_order_stays() {
        let (mut kept, mut gone) = (Kept::default(), vec![]);
        for n in 0..5000 {
            let at = When { at: Time::from_ns(0, 0), error_ns: 0 };
            kept.push(Visit::new(n, Place::line(0, n), Vantage::Proxy, at));
            gone.extend(std::iter::from_fn(|| kept.excess(2000)).map(|v| v.exchange));
        }
        assert_eq!((kept.len(), gone), (2000, (0..3000).collect()));
        assert_eq!(numbers(kept), (3000..5000).collect::<Vec<_>>());
    }
}
