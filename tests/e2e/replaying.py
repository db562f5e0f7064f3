"""`crosswire replay` of recorded incidents: they cross again on a server with sessions, and do not on
one without; and a replay that is recorded can be replayed the same."""
import json

from kit import ROOT, WORK, check, crosswire, serving

# What must be crossed at least, and what crossed or never answered.
CASES = {"02-crossed-id-collision/backend.pcap": (1, 2), "16-large-concurrency/backend.pcap.xz": (1, 5)}
ALLOWED = ["--allow", "journal_append", "--allow", "entity_update"]


def replay(recording, url, *more):
    args = ["replay", recording, "--to", url, *ALLOWED, "--format", "json", *more]
    status, out, err = crosswire(*args)
    report = json.loads(out)
    counts = {}
    for call in report["calls"]:
        counts[call["verdict"]] = counts.get(call["verdict"], 0) + 1
    return status, counts, report, err


def schedule(recording):
    """What would be sent, in order."""
    status, out, err = crosswire("replay", recording, "--dry-run", "--format", "json")
    assert status == 0, err
    return [[c["session"], c["id"], c["method"], c["params"]] for c in json.loads(out)["calls"]]


def run(kind):
    for path, (crossed, hurt) in CASES.items():
        recording, name = ROOT / "fixtures" / path, path.split("/")[0]
        again = WORK / f"again-{name}.pcapng"
        with serving(kind) as url:
            status, counts, report, err = replay(recording, url, "-w", again)
        is_hurt = counts.get("crossed", 0) >= crossed and counts.get("crossed", 0) + counts.get("orphaned", 0) >= hurt
        details = json.dumps([counts, report["troubles"]]) + err
        check(f"{name} on {kind} with sessions: {counts}", status == 1 and is_hurt, details)
        first, second = schedule(recording), schedule(again)
        check(f"{name}: the recording of its replay is the same schedule", first == second, f"{first}\n{second}")
        with serving(kind, "stateless") as url:
            # Slower: on a busy machine no call should wait longer than its caller did.
            status, counts, report, err = replay(recording, url, "--speed", "0.25")
        clean = status == 0 and not counts.get("crossed") and not counts.get("orphaned") and not counts.get("refused")
        check(f"{name} on {kind}, stateless: {counts}", clean, json.dumps(report["calls"], indent=1)[:4000] + err)
