"""Real clients against `crosswire serve` with each fault. What they do stands in docs/clients.md, which
`CROSSWIRE_UPDATE=1` writes anew."""
import json
import os
import re
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from kit import CROSSWIRE, ROOT, WORK, check, skip

DOC = ROOT / "docs/clients.md"
BEGIN, END = "<!-- table -->", "<!-- end of table -->"
FAULTS = {
    "`delay` past the client's deadline": {"do": "delay", "ms": 6000},
    "`late` past the client's deadline": {"do": "late", "ms": 6000},
    "`hang`": {"do": "hang"},
    "`drop`": {"do": "drop"},
    "`reset`": {"do": "reset"},
    "`forget-session`": {"do": "forget-session"},
    "`swap` with b": {"do": "swap"},
    "`wrong-id`: b's": {"do": "wrong-id"},
    "`wrong-id`: nobody's": {"do": "wrong-id", "id": 4711},
    "`duplicate`": {"do": "duplicate"},
    "`on-get`": {"do": "on-get"},
}


def reply(tool, after_ms):
    message = {"jsonrpc": "2.0", "id": 0, "result": {"content": [{"type": "text", "text": f"of {tool}"}]}}
    said = [{"after_ms": after_ms, "message": message}]
    return {"method": "tools/call", "tool": tool, "arguments": {}, "stream": True, "messages": said}


def script(fault):
    return {
        "schema": "crosswire.script/1",
        "get_stream": fault["do"] == "on-get",
        "replies": [reply("a", 600), reply("b", 500)],
        "faults": [{"tool": "a", "call": 1, **fault}],
    }


def play(kind, fault, name):
    """What the client says, and what the played server saw of it."""
    path = WORK / f"{name}.json"
    path.write_text(json.dumps(script(fault)))
    argv = [CROSSWIRE, "serve", path, "--listen", "127.0.0.1:0", "--format", "json", "-w", WORK / f"{name}.pcapng"]
    played = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    url = re.search(r"http://\S+", played.stderr.readline()).group()
    try:
        client = subprocess.run(kind.call + [url, "a", "b"], capture_output=True, text=True, timeout=240)
        lines = client.stdout.splitlines()
    except subprocess.TimeoutExpired:
        lines = []
    # What a client does after it has said what became of its calls counts as well.
    time.sleep(0.5)
    played.send_signal(signal.SIGINT)
    out, _ = played.communicate(timeout=120)
    said = dict(line.split(": ", 1) for line in lines)
    return said, json.loads(out), played.returncode


def words(tool, said):
    if said == f"of {tool}":
        return "its reply"
    if said and said.startswith("of "):
        return f"**{said[3:]}'s reply**"
    return {"timeout": "timeout", None: "nothing said"}.get(said, said)


def cell(said, report):
    """One cell of the table."""
    first = next((r for r in report["requests"] if r["tool"] == "a"), None)
    parts = [words("a", said.get("a"))]
    if first and first["retried_as"]:
        parts.append("asks again")
    if report["initialized"] > 1:
        parts.append("new session")
    if first and first["cancelled"]:
        parts.append("cancels")
    if words("b", said.get("b")) != "its reply":
        parts.append(f"b: {words('b', said.get('b'))}")
    return ", ".join(parts)


def table(columns):
    names = list(columns)
    lines = ["| fault in the reply to a | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for fault in FAULTS:
        lines.append(f"| {fault} | " + " | ".join(columns[n][fault] for n in names) + " |")
    return "\n".join(lines)


def read(text):
    """The columns of the table that stands in the text."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    names = rows[0][1:]
    return {name: {row[0]: row[n + 1] for row in rows[1:]} for n, name in enumerate(names)}


def run(kinds):
    columns = {}
    clients = [k for k in kinds if not k.name.startswith("FastMCP")]
    for kind in clients:
        with ThreadPoolExecutor(3) as pool:
            name = lambda n: f"play-{kind.name}-{n}".replace(" ", "-")
            plays = [pool.submit(play, kind, fault, name(n)) for n, fault in enumerate(FAULTS.values())]
        columns[str(kind)] = column = {}
        for fault, played in zip(FAULTS, plays):
            said, report, status = played.result()
            column[fault] = cell(said, report)
            hit = 2 if "swap" in fault else 1
            held = status == 0 and report["injected"] == hit and len(said) == 2
            check(f"{kind}, {fault}: {column[fault]}", held, json.dumps([said, report], indent=1))
    text = DOC.read_text()
    before, rest = text.split(BEGIN)
    stated, after = rest.split(END)
    if os.environ.get("CROSSWIRE_UPDATE"):
        DOC.write_text(f"{before}{BEGIN}\n{table(columns)}\n{END}{after}")
        return
    stated = read(stated)
    for name, column in columns.items():
        if name not in stated:
            skip(f"{name}: docs/clients.md says nothing of this version")
            continue
        differ = [f"{f}: stated {stated[name].get(f)!r}, seen {seen!r}" for f, seen in column.items() if stated[name].get(f) != seen]
        check(f"{name} does what docs/clients.md states", not differ, "\n".join(differ))
