//! Calls whose replies are still to be written, and which of them have each other's.

use serde_json::Value;

/// Calls in flight whose bodies can be swapped.
#[derive(Default)]
pub(super) struct Swaps(Vec<Open>);

struct Open {
    /// Of the request.
    index: usize,
    own: Value,
    got: Option<Value>,
    /// The script wants its body swapped, with whichever call is in flight with it.
    asks: bool,
}

impl Swaps {
    /// Takes in a call with its own reply. Gives the call that it was swapped with: one that waits for that; else, where
    /// this one asks, any that is in flight, since which of two concurrent calls comes first is chance.
    pub(super) fn enter(&mut self, index: usize, own: Value, asks: bool) -> Option<usize> {
        let waiting = self.0.iter().position(|o| o.got.is_none() && o.asks);
        let partner = waiting.or_else(|| self.0.iter().position(|o| o.got.is_none() && asks));
        let open = partner.and_then(|p| self.0.get_mut(p));
        let (other, got) = match open {
            Some(open) => {
                open.got = Some(own.clone());
                (Some(open.index), Some(open.own.clone()))
            }
            None => (None, None),
        };
        self.0.push(Open { index, own, got, asks });
        other
    }

    /// Whether the call still has its own reply.
    pub(super) fn is_alone(&self, index: usize) -> bool {
        self.0.iter().any(|o| o.index == index && o.got.is_none())
    }

    /// Lets a call go; gives the reply that it got for its own.
    pub(super) fn leave(&mut self, index: usize) -> Option<Value> {
        let place = self.0.iter().position(|o| o.index == index)?;
        self.0.swap_remove(place).got
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whichever_of_the_two_comes_first() {
        for asks in [[true, false], [false, true]] {
            let mut swaps = Swaps::default();
            assert_eq!(swaps.enter(0, json!("a"), asks[0]), None);
            assert!(swaps.is_alone(0));
            assert_eq!(swaps.enter(1, json!("b"), asks[1]), Some(0));
            assert_eq!((swaps.leave(0), swaps.leave(1)), (Some(json!("b")), Some(json!("a"))));
        }
    }

    #[test]
    fn only_where_one_asks_and_only_once() {
        let mut swaps = Swaps::default();
        assert_eq!(swaps.enter(0, json!("a"), false), None);
        assert_eq!(swaps.enter(1, json!("b"), false), None);
        assert_eq!(swaps.leave(1), None);
        assert_eq!(swaps.enter(2, json!("c"), true), Some(0));
        assert_eq!(swaps.enter(3, json!("d"), true), None);
        assert_eq!((swaps.leave(0), swaps.leave(3)), (Some(json!("c")), None));
    }
}
