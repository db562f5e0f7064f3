//! Patterns of names.

/// Does `text` fit the pattern, in which `*` is any run of characters and `?` any one?
pub fn glob(pattern: &str, text: &str) -> bool {
    let (p, t): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut i, mut j) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while j < t.len() {
        match p.get(i) {
            Some('*') => {
                star = Some((i, j));
                i += 1;
            }
            Some(c) if *c == '?' || Some(c) == t.get(j) => {
                i += 1;
                j += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    i = at + 1;
                    j = from + 1;
                }
                None => return false,
            },
        }
    }
    p.get(i..).is_some_and(|rest| rest.iter().all(|c| *c == '*'))
}

#[cfg(test)]
mod tests {
    use super::glob;

    #[test]
    fn globs() {
        for (pattern, text, fits) in [
            ("crossed/*", "crossed/id-collision", true),
            ("*", "", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*-*n", "id-collision", true),
            ("crossed", "crossed/x", false),
        ] {
            assert_eq!(glob(pattern, text), fits, "{pattern} {text}");
        }
    }
}
