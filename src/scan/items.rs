//! From stored files to items: what of an archive is an input, and what each is.

use super::source::{FileOpener, Passed, StoredFile, Way, opener};
use super::spool::Container;
use super::survey::{Kind, Survey, survey};
use crate::input::OpenInput;
use crate::input::archive::tar::{TarReader, is_tar};
use crate::input::archive::{Packing, Range, Spot, zip};
use crate::input::packed::Opener;
use crate::input::rotation::{self, Rotated};
use crate::model::options::ReadOptions;
use serde::{Deserialize, Serialize};
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

/// What a look at one stored file found; kept in the checkpoint.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Looked {
    /// Members, or the file itself.
    pub members: Vec<Member>,
    /// What is wrong with the file as an archive.
    pub broken: Option<String>,
}

/// One input in a stored file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Member {
    /// Its name in the archive; none: it is the file.
    pub name: Option<String>,
    /// How it is reached.
    pub way: Way,
    /// Last modification, ns since the epoch.
    pub modified_ns: Option<i64>,
    /// What it is.
    pub survey: Survey,
}

/// An input of a scan.
#[derive(Debug)]
pub struct Item {
    /// `path` or `archive!member`.
    pub name: String,
    /// Where it stands: its folder, dates and numbers of rotation left out.
    pub folder: String,
    /// What its name says.
    pub rotated: Rotated,
    /// Last modification, ns since the epoch.
    pub modified_ns: Option<i64>,
    /// How it is opened.
    pub opener: Arc<dyn Opener>,
    /// Where it is stored.
    pub file: StoredFile,
    /// How it is reached there.
    pub way: Way,
    /// The archive that has to be unpacked for it.
    pub container: Option<Arc<Container>>,
    /// What it is.
    pub survey: Survey,
    /// It was found, not named.
    pub found: bool,
}

/// How files are looked at.
pub struct Looking<'a> {
    /// As `analyze` reads.
    pub options: &'a ReadOptions,
    /// For temporary files.
    pub folder: PathBuf,
    /// Where bytes are counted.
    pub passed: Passed,
    /// The scan was interrupted: what is looked at now is not wanted.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

impl Looking<'_> {
    fn file_opener(&self, file: &StoredFile) -> FileOpener {
        FileOpener { place: file.place.clone(), passed: self.passed.clone() }
    }

    /// The archive that a file may be.
    pub fn container(&self, file: &StoredFile) -> Arc<Container> {
        Arc::new(Container::new(file.clone(), self.file_opener(file), self.folder.clone()))
    }

    /// Looks at one stored file from end to end.
    pub fn look(&self, file: &StoredFile) -> Looked {
        self.try_look(file)
            .unwrap_or_else(|e| Looked { members: vec![], broken: Some(format!("it cannot be read: {e}")) })
    }

    fn try_look(&self, file: &StoredFile) -> io::Result<Looked> {
        let opener = self.file_opener(file);
        let mut first = [0; 4];
        let n = opener.open()?.read(&mut first)?;
        if zip::is_zip(first.get(..n).unwrap_or_default()) {
            return self.zip(file);
        }
        let open = OpenInput::new(file.name.clone(), opener.open()?, file.modified_ns);
        if !is_tar(open.head()) {
            let member = self.member(file, None, Way::File, file.modified_ns, 0);
            return Ok(Looked { members: vec![member], broken: None });
        }
        if open.compressions.is_empty() { self.tar(file) } else { self.spooled(file) }
    }

    fn member(
        &self,
        file: &StoredFile,
        name: Option<String>,
        way: Way,
        modified_ns: Option<i64>,
        missing: u64,
    ) -> Member {
        self.member_in(file, &self.container(file), name, way, modified_ns, missing)
    }

    fn member_in(
        &self,
        file: &StoredFile,
        container: &Arc<Container>,
        name: Option<String>,
        way: Way,
        modified_ns: Option<i64>,
        missing: u64,
    ) -> Member {
        let full = full_name(&file.name, name.as_deref());
        let opener = opener(file, &way, container, &self.passed);
        let mut survey = survey(&full, modified_ns, &opener, self.options, self.stop);
        let mut say = |why: String| {
            let before = survey.broken.take().map_or(String::new(), |b| format!("{b}; "));
            survey.broken = Some(format!("{before}{why}"));
        };
        if missing > 0 {
            say(format!("its archive is cut off {missing} bytes before its end"));
        }
        let told = rotation::rotated(&full).compression;
        if survey.bytes > 0
            && let Some(told) = told.filter(|t| !survey.compressions.iter().any(|c| c == t))
        {
            say(format!("its name says {told}, and it is none; it was read as it is"));
        }
        Member { name, way, modified_ns, survey }
    }

    fn zip(&self, file: &StoredFile) -> io::Result<Looked> {
        let members = match zip::members(&file.place.blob()?) {
            Ok(members) => members,
            Err(e) => return Ok(Looked { members: vec![], broken: Some(e.to_string()) }),
        };
        let mut out = Looked::default();
        let mut unread = vec![];
        for m in members {
            match m.spot {
                Ok(spot) => {
                    let mut member = self.member(file, Some(m.name), Way::At(spot), file.modified_ns, 0);
                    let is_packed_only = member.survey.compressions.is_empty();
                    if is_packed_only && member.survey.kind != Kind::Unknown && member.survey.bytes != m.bytes {
                        member.survey.broken.get_or_insert_with(|| {
                            format!("{} of its {} bytes can be read", member.survey.bytes, m.bytes)
                        });
                    }
                    out.members.push(member);
                }
                Err(why) => unread.push(format!("{}: {why}", m.name)),
            }
        }
        out.broken = (!unread.is_empty()).then(|| unread.join("; "));
        Ok(out)
    }

    /// A tar archive whose members can be read where they are.
    fn tar(&self, file: &StoredFile) -> io::Result<Looked> {
        let blob = file.place.blob()?;
        let length = blob.length();
        let mut tar = TarReader::at_any_place(Range::new(blob, 0, u64::MAX));
        let mut out = Looked::default();
        loop {
            match tar.next_entry() {
                Ok(None) => break,
                Err(e) => {
                    out.broken = Some(e.to_string());
                    break;
                }
                Ok(Some(entry)) => {
                    let there = length.saturating_sub(entry.at).min(entry.bytes);
                    let spot = Spot { at: entry.at, packed_bytes: there, packing: Packing::Stored };
                    let modified_ns = entry.modified_ns.or(file.modified_ns);
                    let missing = entry.bytes - there;
                    out.members.push(self.member(file, Some(entry.name), Way::At(spot), modified_ns, missing));
                }
            }
        }
        Ok(out)
    }

    fn spooled(&self, file: &StoredFile) -> io::Result<Looked> {
        let container = self.container(file);
        container.claim();
        let spool = container.spool()?;
        let members = spool.entries.iter().enumerate().map(|(index, (entry, missing))| {
            let modified_ns = entry.modified_ns.or(file.modified_ns);
            self.member_in(file, &container, Some(entry.name.clone()), Way::Nth(index), modified_ns, *missing)
        });
        Ok(Looked { members: members.collect(), broken: spool.fault.clone() })
    }
}

/// `archive!member`.
pub fn full_name(file: &str, member: Option<&str>) -> String {
    member.map_or_else(|| file.to_owned(), |m| format!("{file}!{m}"))
}

/// The items of a file that was looked at.
pub fn items(file: &StoredFile, looked: Looked, container: &Arc<Container>, passed: &Passed) -> Vec<Item> {
    let of = |m: Member| {
        let name = full_name(&file.name, m.name.as_deref());
        let rotated = rotation::rotated(&name);
        let folder = match rotated.stem.rfind(['/', '!']) {
            Some(end) => rotated.stem.get(..end).unwrap_or_default(),
            None => "",
        };
        // `tar -C folder .` names members `./a`.
        let folder = folder.strip_suffix("!.").unwrap_or(folder).to_owned();
        Item {
            folder,
            rotated,
            modified_ns: m.modified_ns,
            opener: opener(file, &m.way, container, passed),
            container: matches!(m.way, Way::Nth(_)).then(|| container.clone()),
            survey: m.survey,
            way: m.way,
            file: file.clone(),
            found: file.found || m.name.is_some(),
            name,
        }
    };
    looked.members.into_iter().map(of).collect()
}
