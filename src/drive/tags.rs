//! Unique tags: a short word in a call's arguments that no other call has, by which its reply is
//! known wherever it turns up.

use memchr::memmem;
use std::sync::atomic::{AtomicU32, Ordering};

/// Makes the tags of one run.
#[derive(Debug)]
pub struct Tags {
    /// What all of them begin with.
    prefix: String,
    next: AtomicU32,
}

impl Tags {
    /// Tags that no other run has; `seed` is its start, ns since 1970.
    pub fn new(seed: i64) -> Tags {
        let mut n = seed.unsigned_abs() ^ (u64::from(std::process::id()) << 40);
        let mut run = String::new();
        for _ in 0..6 {
            run.push(char::from_digit((n % 36) as u32, 36).unwrap_or('0'));
            n /= 36;
        }
        Tags { prefix: format!("cw{run}n"), next: AtomicU32::new(0) }
    }

    /// The number of a new tag.
    pub fn take(&self) -> u32 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// A tag as text: lower-case letters and digits, not the beginning of another.
    pub fn text(&self, number: u32) -> String {
        format!("{}{number:06}z", self.prefix)
    }

    /// The numbers of the tags in `bytes`, each once, whatever their case.
    pub fn find(&self, bytes: &[u8]) -> Vec<u32> {
        let lower = bytes.to_ascii_lowercase();
        let mut found = vec![];
        for at in memmem::find_iter(&lower, self.prefix.as_bytes()) {
            let rest = lower.get(at + self.prefix.len()..).unwrap_or_default();
            let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
            let number = rest.get(..digits).and_then(|d| std::str::from_utf8(d).ok()?.parse().ok());
            if let Some(number) = number.filter(|n| rest.get(digits) == Some(&b'z') && !found.contains(n)) {
                found.push(number);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::Tags;

    #[test]
    fn found_whole_and_once() {
        let tags = Tags::new(1_795_981_315_562_000_000);
        let (a, b) = (tags.text(7), tags.text(1_234_567));
        let text = format!("x{a}y {} {b} {}", a.to_uppercase(), &b[..b.len() - 1]);
        assert_eq!(tags.find(text.as_bytes()), [7, 1_234_567]);
        assert!(Tags::new(1).find(text.as_bytes()).is_empty());
    }
}
