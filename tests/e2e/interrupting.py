"""SIGINT at any time leaves a readable recording and a partial report that accuses nobody."""
import json
import random
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from kit import CROSSWIRE, ROOT, WORK, check, crosswire, serving
from playing import script

FAULTS = ("wrong_ids", "wrong_bodies", "other_session", "wrong_stream", "duplicates", "lost")
TIMES = 8
AT_ONCE = 3


def cut(name, argv, after, meanwhile=None):
    """Runs the program, interrupts it after so many seconds; gives its report and what is wrong."""
    recording = WORK / f"{name}.pcapng"
    argv = [CROSSWIRE, *map(str, argv), "--format", "json", "-w", str(recording)]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    client = meanwhile(process) if meanwhile else None
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    if client:
        client.kill()
        client.wait()
    if process.returncode == -signal.SIGINT and not recording.exists():
        return None, []  # It had not begun yet.
    wrong = []
    report = json.loads(out) if out.strip() else None
    if report is None:
        wrong.append(f"no report, exit status {process.returncode}: {err}")
    status, out, err = crosswire("analyze", recording, "--format", "json")
    analysed = json.loads(out)
    problems = [p for i in analysed["inputs"] for p in i["problems"] if p["kind"] != "empty"]
    if status == 2 and analysed["summary"]["exchanges"]:
        wrong.append(f"the recording cannot be analysed: {err}")
    wrong += [f"the recording has a problem: {p}" for p in problems]
    wrong += [f"the recording accuses: {f['rule']} {f['summary']}" for f in analysed["findings"] if f["severity"] != "low"]
    return report, wrong


def of_probe(url, n, after):
    quick = ["--batch", "3", "--repetitions", "2", "--slow", "60ms"]
    report, wrong = cut(f"cut-probe-{n}", ["probe", url, *quick], after)
    if report:
        wrong += [f"{report['summary'][f]} {f}" for f in FAULTS if report["summary"][f]]
        stopped = report["stopped"] and any("stopped" in t for t in report["troubles"])
        if not stopped and len(report["configurations"]) < report["planned"]:
            wrong.append("it does not say that it was stopped")
    return wrong


def of_replay(url, n, after):
    recording = ROOT / "fixtures/16-large-concurrency/backend.pcap.xz"
    report, wrong = cut(f"cut-replay-{n}", ["replay", recording, "--to", url, "--speed", "0.5"], after)
    if report:
        wrong += [f"{c['verdict']}: {c}" for c in report["calls"] if c["verdict"] in ("crossed", "orphaned", "refused")]
        if len(report["calls"]) < 1010 and not report["stopped"]:
            wrong.append("it does not say that it was stopped")
    return wrong


def of_serve(kind, n, after):
    path = WORK / f"cut-serve-{n}.json"
    path.write_text(json.dumps({**script({"do": "hang"}), "faults": []}))

    def client(process):
        url = process.stderr.readline().split(" at ")[1].strip()
        return subprocess.Popen(kind.call + [url, "a", "b"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    report, wrong = cut(f"cut-serve-{n}", ["serve", path, "--listen", "127.0.0.1:0"], after, client)
    answered = [r for r in report["requests"] if r["tool"] and r["answered_ms"] is not None]
    lost = [r for r in report["requests"] if r["tool"] and r["answered_ms"] is None and r["left_ms"] is not None]
    if len(answered) + len(lost) < sum(1 for r in report["requests"] if r["tool"]) - 2 or report["crossed"]:
        wrong.append(f"a report that cannot be: {report}")
    return wrong


def run(kind):
    chance = random.Random(7)
    with serving(kind, "stateless") as url, ThreadPoolExecutor(AT_ONCE) as pool:
        for name, longest, one in (
            ("probe", 6.0, lambda n, after: of_probe(url, n, after)),
            ("replay", 4.0, lambda n, after: of_replay(url, n, after)),
            ("serve", 2.0, lambda n, after: of_serve(kind, n, after)),
        ):
            times = [0.02] + [chance.uniform(0.05, longest) for _ in range(TIMES - 1)]
            runs = [(after, pool.submit(one, n, after)) for n, after in enumerate(times)]
            wrong = [f"after {after:.2f} s: {w}" for after, r in runs for w in r.result()]
            check(f"{name} interrupted {TIMES} times: readable recordings, true reports", not wrong, "\n".join(wrong))
