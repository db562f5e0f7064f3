//! Finds the few words that must be kept back so that the findings stay what they are.

/// More words than this are not kept back: then redaction and findings do not go together.
const WORDS: usize = 16;
/// Trials in all; each redacts and analyses anew.
const TRIALS: usize = 300;

/// Which of `candidates` must be kept back so that `holds` is true of them. Those that come first are
/// kept back before those that come later. None if even all of them do not help, or too many would
/// be needed.
///
/// # Errors
/// Those of `holds`.
pub fn needed(
    candidates: &[String],
    mut holds: impl FnMut(&[String]) -> anyhow::Result<bool>,
) -> anyhow::Result<Option<Vec<String>>> {
    let mut trials = 0;
    let mut found: Vec<String> = vec![];
    if !holds(candidates)? {
        return Ok(None);
    }
    while !holds(&found)? {
        // The shortest beginning of the candidates that helps ends with a word that is needed.
        let (mut low, mut high) = (0, candidates.len());
        while low + 1 < high {
            let middle = low.midpoint(high);
            let mut set = found.clone();
            set.extend_from_slice(candidates.get(..middle).unwrap_or_default());
            trials += 1;
            if holds(&set)? { high = middle } else { low = middle }
        }
        let Some(word) = candidates.get(high.saturating_sub(1)).filter(|w| !found.contains(w)) else { return Ok(None) };
        found.push(word.clone());
        if found.len() > WORDS || trials > TRIALS {
            return Ok(None);
        }
    }
    Ok(Some(found))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::needed;

    #[test]
    fn exactly_the_words_that_matter() {
        let all: Vec<String> = (0..100).map(|n| n.to_string()).collect();
        for wanted in [vec![], vec![0], vec![99], vec![3, 50], vec![0, 1, 98, 99]] {
            let wanted: Vec<String> = wanted.iter().map(ToString::to_string).collect();
            let mut found = needed(&all, |set| Ok(wanted.iter().all(|w| set.contains(w)))).unwrap().unwrap();
            found.sort_by_key(|w| w.parse::<u32>().unwrap());
            assert_eq!(found, wanted);
        }
        assert_eq!(needed(&all, |_| Ok(false)).unwrap(), None);
        assert_eq!(needed(&all, |set| Ok(set.len() > 50)).unwrap(), None);
    }
}
