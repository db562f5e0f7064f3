"""Real clients and servers with the recording proxy between them, in every mode of the transport: what the client says
must be what it says without the proxy, and the recording must be whole and without a finding."""
import contextlib
import json
import re
import subprocess

import kit

# Modes, and the tools that are called at once in each.
MODES = {"sessions": ["slow_echo", "slow_echo"], "stateless": ["slow_echo"], "json": ["slow_echo"], "resumable": ["polled"]}


@contextlib.contextmanager
def proxied(url, file):
    """Runs the proxy before a server; gives the URL for clients."""
    server, path = re.match(r"(http://[^/]+)(/.*)", url).groups()
    argv = [kit.CROSSWIRE, "proxy", "--listen", "127.0.0.1:0", "--upstream", server, "-w", str(file), "--guard"]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    try:
        address = process.stderr.readline().rsplit(" at ", 1)[1].strip()
        yield address + path
    finally:
        process.send_signal(2)
        process.communicate(timeout=120)


def client(kind, url, tools):
    done = subprocess.run([*kind.call, url, *tools], capture_output=True, text=True, timeout=240)
    return done.stdout.strip(), done.stderr


def pair(server, caller, mode):
    tools = MODES[mode]
    file = kit.WORK / f"{server.name}-{caller.name}-{mode}.pcapng".replace(" ", "-")
    with kit.serving(server, mode) as url:
        expected, why = client(caller, url, tools)
        with proxied(url, file) as through:
            got, said = client(caller, through, tools)
    name = f"proxy: {caller} with {server}, {mode}"
    kit.check(f"{name}: the client says the same", got and got == expected, f"{got!r}, {expected!r}\n{why}\n{said}")
    status, out, err = kit.crosswire("timeline", file, "--format", "json")
    report = json.loads(out or "{}")
    rules = [f["rule"] for f in report.get("findings", [])]
    problems = [p["kind"] for i in report.get("inputs", []) for p in i["problems"]]
    kit.check(f"{name}: the recording is whole and clean", status == 0 and not problems, f"{status} {rules} {problems} {err}")
    if mode == "resumable":
        kit.check(f"{name}: the reply came on a resumed stream", "after the stream ended" in got and any(
            x["method"] == "GET" and x["replies"] for x in report.get("exchanges", [])), got)


def run(kinds):
    callers = [k for k in kinds if k.name in ("Python 1.26.0", "TypeScript 1.x")]
    for server in callers:
        for caller in callers:
            for mode in MODES:
                pair(server, caller, mode)
