//! What the paths on the command line stand for: files, folders with all in them, patterns.

use super::source::{Place, StoredFile};
use crate::input::objects;
use crate::model::glob::glob;
use crate::model::limits::{SCAN_DEPTH, SCAN_FILES};
use std::path::{Path, PathBuf};

/// The files found, in order of their names, and what could not be listed.
#[derive(Debug, Default)]
pub struct Listing {
    /// Files.
    pub files: Vec<StoredFile>,
    /// Sentences about paths that are missing or cannot be listed.
    pub troubles: Vec<String>,
}

impl Listing {
    fn trouble(&mut self, path: &Path, why: impl std::fmt::Display) {
        self.troubles.push(format!("{}: {why}", path.display()));
    }

    fn objects(&mut self, url: &str) {
        let found = objects::list(url);
        self.troubles.extend(found.troubles);
        for (object, is_found) in found.objects {
            let mut file = StoredFile::of(object, is_found);
            // What makes it another object than one of the same name is not shown.
            let is_alike = |f: &&StoredFile| f.place.has_secret() && f.place.name() == Some(file.name.as_str());
            let alike = if file.place.has_secret() { self.files.iter().filter(is_alike).count() } else { 0 };
            if alike > 0 {
                file.name = format!("{}#{}", file.name, alike + 1);
            }
            self.files.push(file);
        }
    }

    fn add(&mut self, path: &Path, found: bool) {
        match std::fs::metadata(path) {
            Ok(meta) if meta.is_file() => {
                let modified = meta.modified().ok().and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
                self.files.push(StoredFile {
                    name: path.to_string_lossy().into_owned(),
                    place: Place::Path(path.to_owned()),
                    bytes: meta.len(),
                    modified_ns: modified.and_then(|d| i64::try_from(d.as_nanos()).ok()),
                    found,
                });
            }
            // Devices, sockets and links that lead nowhere are no logs.
            Ok(_) => {}
            Err(_) if found => {}
            Err(e) => self.trouble(path, e),
        }
    }
}

/// Everything that `paths` stand for. Files in the folder `but` are left out: a scan does not read
/// what it writes.
pub fn list(paths: &[String], but: Option<&Path>) -> Listing {
    let mut out = Listing::default();
    let but = but.and_then(|p| p.canonicalize().ok());
    for name in paths {
        if name == "-" {
            out.troubles.push(
                "-: standard input cannot be scanned, it can be read only once; `crosswire analyze -` reads it".into(),
            );
        } else if objects::is_url(name) {
            out.objects(name);
        } else {
            local(Path::new(name), but.as_deref(), &mut out);
        }
    }
    // Nothing found in nothing would look like a clean report.
    if out.files.is_empty() && out.troubles.is_empty() {
        paths.iter().for_each(|name| out.trouble(Path::new(name), "no files in it (hidden ones are left out)"));
    }
    out.files.sort_by(|a, b| a.name.cmp(&b.name));
    out.files.dedup_by(|a, b| a.name == b.name);
    if out.files.len() > SCAN_FILES {
        out.troubles.push(format!("more than {SCAN_FILES} files; those beyond were passed over"));
        out.files.truncate(SCAN_FILES);
    }
    out
}

fn local(path: &Path, but: Option<&Path>, out: &mut Listing) {
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_dir() => walk(path, 0, but, out),
        Ok(_) => out.add(path, false),
        Err(e) => match path.to_string_lossy().contains(['*', '?']) {
            true => pattern(path, but, out),
            false => out.trouble(path, e),
        },
    }
}

fn walk(folder: &Path, depth: usize, but: Option<&Path>, out: &mut Listing) {
    if out.files.len() > SCAN_FILES || (but.is_some() && folder.canonicalize().ok().as_deref() == but) {
        return;
    }
    for (path, is_folder) in entries(folder, out) {
        if is_folder && depth < SCAN_DEPTH {
            walk(&path, depth + 1, but, out);
        } else if is_folder {
            out.trouble(&path, format!("more than {SCAN_DEPTH} folders inside each other; not entered"));
        } else {
            out.add(&path, true);
        }
    }
}

/// What a folder holds, without hidden files; a link to a folder is no folder: it may lead back up.
fn entries(folder: &Path, out: &mut Listing) -> Vec<(PathBuf, bool)> {
    let listed = std::fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let listed = listed.map_err(|e| out.trouble(folder, e)).unwrap_or_default();
    let shown = listed.into_iter().filter(|e| !e.file_name().as_encoded_bytes().starts_with(b"."));
    shown.map(|e| (e.path(), e.file_type().is_ok_and(|t| t.is_dir()))).collect()
}

/// `*` and `?` match within a name, `**` any folders.
fn pattern(path: &Path, but: Option<&Path>, out: &mut Listing) {
    let before = out.files.len();
    let parts: Vec<String> = path.components().map(|c| c.as_os_str().to_string_lossy().into_owned()).collect();
    let fixed = parts.iter().take_while(|p| !p.contains(['*', '?'])).count();
    let (base, rest) = parts.split_at(fixed);
    let base: PathBuf = if base.is_empty() { PathBuf::from(".") } else { base.iter().collect() };
    matching(&base, rest, 0, but, out);
    if out.files.len() == before {
        out.trouble(path, "no file matches this pattern");
    }
}

fn matching(folder: &Path, parts: &[String], depth: usize, but: Option<&Path>, out: &mut Listing) {
    let Some((first, rest)) = parts.split_first() else { return };
    if depth > SCAN_DEPTH {
        return;
    }
    if first == "**" {
        matching(folder, rest, depth, but, out);
    }
    for (path, is_folder) in entries(folder, out) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match (first == "**", rest.is_empty()) {
            (true, _) if is_folder => matching(&path, parts, depth + 1, but, out),
            (true, true) => out.add(&path, true),
            (true, false) => {}
            (false, _) if !glob(first, &name) => {}
            (false, true) => local(&path, but, out),
            (false, false) if is_folder => matching(&path, rest, depth + 1, but, out),
            (false, false) => {}
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::list;

    #[test]
    fn folders_patterns_and_what_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().to_str().unwrap();
        for name in [
            "h1/nginx/a.log",
            "h1/nginx/a.log.1.gz",
            "h2/nginx/a.log",
            "h2/deep/er/x.pcap",
            ".hidden/y.log",
            "out/z.log",
        ] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        std::os::unix::fs::symlink(dir.path(), dir.path().join("h1/loop")).unwrap();
        let names = |paths: &[&str]| -> Vec<String> {
            let paths: Vec<String> = paths.iter().map(|p| format!("{top}/{p}")).collect();
            let out = list(&paths, Some(&dir.path().join("out")));
            let strip = |n: &str| n.strip_prefix(top).unwrap_or(n).trim_start_matches('/').to_owned();
            out.files.iter().map(|f| strip(&f.name)).chain(out.troubles).collect()
        };
        let all = ["h1/nginx/a.log", "h1/nginx/a.log.1.gz", "h2/deep/er/x.pcap", "h2/nginx/a.log"];
        assert_eq!(names(&[""]), all);
        assert_eq!(names(&["h?/nginx/a.log*", "h1"]), ["h1/nginx/a.log", "h1/nginx/a.log.1.gz", "h2/nginx/a.log"]);
        assert_eq!(names(&["**/*.pcap"]), ["h2/deep/er/x.pcap"]);
        assert_eq!(names(&["h2/**"]), ["h2/deep/er/x.pcap", "h2/nginx/a.log"]);
        assert!(names(&["none.log"])[0].contains("No such file"));
        assert!(names(&["*.none"])[0].contains("no file matches"));
        std::fs::create_dir(dir.path().join("empty")).unwrap();
        assert!(names(&["empty"])[0].contains("no files in it"));
        assert_eq!(names(&["empty", "h2/deep"]), ["h2/deep/er/x.pcap"]);
    }
}
