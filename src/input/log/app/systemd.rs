//! systemd's messages on the life of a unit, by MESSAGE_ID (systemd/sd-messages.h) or by text.

use super::fields;
use super::phrase::{Phrase, Said};
use crate::model::record::LogEventKind as K;

/// The phrases. Their readers ask for a unit name (`x.service`), since `Started` and `Stopped`
/// are anyone's words; [`by_id`] needs no such care.
pub(super) static PHRASES: &[Phrase] = &[
    Phrase::start("Started ", K::UnitStarted, unit_after),
    Phrase::start("Stopping ", K::UnitStopping, unit_after),
    Phrase::start("Stopped ", K::UnitStopped, unit_after),
    Phrase::start("Failed to start ", K::UnitFailed, unit_after),
    Phrase::anywhere(": Deactivated successfully.", K::UnitStopped, unit_before),
    Phrase::anywhere(": Succeeded.", K::UnitStopped, unit_before),
    Phrase::anywhere(": Main process exited, ", K::UnitFailed, main_exit),
    Phrase::anywhere(": Failed with result '", K::UnitFailed, unit_before),
    Phrase::anywhere(": Scheduled restart job, ", K::UnitRestart, unit_before),
    Phrase::anywhere(": Service RestartSec=", K::UnitRestart, unit_before),
    Phrase::anywhere(": A process of this unit has been killed by the OOM killer.", K::UnitFailed, unit_before),
    Phrase::anywhere(": Watchdog timeout", K::UnitFailed, unit_before),
    Phrase::anywhere(": Start request repeated too quickly.", K::UnitFailed, unit_before),
    Phrase::anywhere(": State 'stop-sigterm' timed out. Killing.", K::UnitStopping, unit_before),
    // docker compose, of a service's container
    Phrase::anywhere(" exited with code ", K::UnitStopped, container_exit),
];

/// The kind of event that a MESSAGE_ID names.
pub(super) fn by_id(id: &str) -> Option<K> {
    Some(match id {
        "39f53479d3a045ac8e11786248231fbf" => K::UnitStarted,
        "de5b426a63be47a7b6ac3eaac82e2f6f" => K::UnitStopping,
        "9d1aaa27d60140bd96365438aad20286" | "7ad2d189f7e94e70a38c781354912448" => K::UnitStopped,
        "98e322203f7a4ed290d09fe03c09fe15"
        | "d9b373ed55a64feb8242e02dbe79a49c"
        | "be02cf6855d2428ba40df7e9d022f03d"
        | "fe6faa94e7774663a0da52717891d8ef" => K::UnitFailed,
        "5eb03494b6584870a536b337290809b3" => K::UnitRestart,
        _ => return None,
    })
}

const SUFFIXES: &[&str] = &[".service", ".socket", ".scope", ".target", ".timer"];

fn is_unit(name: &str) -> bool {
    name.len() <= 256
        && SUFFIXES.iter().any(|s| name.ends_with(s) && name.len() > s.len())
        && !name.contains(char::is_whitespace)
}

/// The unit that a message of the service manager names at its start (`x.service: …`) or after
/// its verb (`Started x.service - …`).
pub(super) fn unit_of(text: &str) -> Option<&str> {
    let first = text.split(": ").next().filter(|u| is_unit(u));
    first.or_else(|| text.split_ascii_whitespace().take(4).map(|w| w.trim_end_matches(['.', ':'])).find(|w| is_unit(w)))
}

fn unit_after(text: &str, _: usize, end: usize) -> Option<Said<'_>> {
    let unit = text.get(end..)?.split_ascii_whitespace().next()?.trim_end_matches('.');
    is_unit(unit).then(|| Said { unit: Some(unit), ..Said::default() })
}

fn unit_before(text: &str, start: usize, _: usize) -> Option<Said<'_>> {
    let unit = text.get(..start)?.rsplit(' ').next()?;
    is_unit(unit).then(|| Said { unit: Some(unit), ..Said::default() })
}

/// An exit with status 0 is no failure.
pub(super) fn exit_kind(rest: &str) -> K {
    let clean = rest.contains("code=exited") && rest.contains("status=0/");
    if clean { K::UnitStopped } else { K::UnitFailed }
}

fn main_exit(text: &str, start: usize, end: usize) -> Option<Said<'_>> {
    Some(Said { kind: Some(exit_kind(text.get(end..)?)), ..unit_before(text, start, end)? })
}

/// `web-1 exited with code 137`.
fn container_exit(text: &str, start: usize, end: usize) -> Option<Said<'_>> {
    let unit = fields::name(text.get(..start)?).filter(|n| n.len() == start)?;
    let code = text.get(end..)?.trim_start();
    let clean = code.strip_prefix('0').is_some_and(|r| !r.starts_with(|c: char| c.is_ascii_digit()));
    Some(Said { unit: Some(unit), kind: Some(if clean { K::UnitStopped } else { K::UnitFailed }), ..Said::default() })
}
