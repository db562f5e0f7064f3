"""`crosswire probe` finds the id collision of every SDK that has it, and nothing with distinct ids or
without sessions."""
import json

from kit import WORK, check, crosswire, serving

FAULTS = ("wrong_ids", "wrong_bodies", "other_session", "wrong_stream", "duplicates", "lost")
# Versions that were seen to keep calls in flight by their bare id. Others may have been mended:
# of them only what is wrong with distinct ids counts.
CROSSES = {
    "Python 1.26.0": ["1.26.0"],
    "Python 1.x": ["1.27.0", "1.30.0"],
    "Python 2.x": ["2.3.0"],
    "FastMCP 3.2.0": ["3.2.0"],
    "TypeScript 1.x": ["1.32.2"],
    "TypeScript 2.x": ["2.4.0"],
    "rmcp": ["3.11.0"],
}


def probe(url, recording):
    quick = ["--batch", "3", "--repetitions", "1", "--slow", "250ms"]
    status, out, err = crosswire("probe", url, *quick, "--format", "json", "-w", recording)
    return status, json.loads(out), err


def red(report):
    return {row["kind"] for row in report["configurations"] if any(row[f] for f in FAULTS)}


def summary(report):
    s = report["summary"]
    return f"{s['calls']} calls, " + ", ".join(f"{s[f]} {f.replace('_', ' ')}" for f in FAULTS if s[f])


def sees(report):
    """The probe proved that it can see, and ran the whole sweep."""
    checks = report["self_check"]
    is_whole = len(report["configurations"]) == report["planned"]
    return is_whole and len(checks) == 5 and all(c["passed"] for c in checks) and not report["troubles"]


def run(kinds):
    for kind in kinds:
        recording = WORK / f"{kind.name}.pcapng"
        with serving(kind) as url:
            status, report, err = probe(url, recording)
        found = red(report)
        collide = {row["kind"] for row in report["configurations"] if row["collided"] is not None}
        details = json.dumps(report, indent=1) + err
        check(f"{kind}: the probe sees: {summary(report)}", sees(report) and report["sessions"], details)
        check(f"{kind}: distinct ids are clean", found <= collide, details)
        if kind.version in CROSSES[kind.name]:
            crossing = {"collide-first-ends-first", "collide-second-ends-first", "collide-batch", "abandon-reuse"}
            check(f"{kind}: colliding ids cross", status == 1 and crossing <= found, details)
            # Python's table is keyed by the id as text.
            by_text = "Python" in kind.name or "FastMCP" in kind.name
            check(f'{kind}: 7 and "7" are {"one id" if by_text else "two"}', by_text == ("collide-types" in found), details)
            status, out, _ = crosswire("analyze", recording, "--format", "json", "--rule", "crossed/id-collision")
            analysed = json.loads(out)
            whole = not any(i["problems"] for i in analysed["inputs"])
            check(f"{kind}: the recording shows it too", status == 1 and analysed["findings"] and whole, out)
        with serving(kind, "stateless") as url:
            status, report, err = probe(url, WORK / "stateless.pcapng")
        details = json.dumps(report, indent=1) + err
        clean = status == 0 and sees(report) and not red(report) and not report["sessions"]
        check(f"{kind}, stateless: clean: {summary(report)}", clean, details)
