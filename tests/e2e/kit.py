"""What the end-to-end tests share: real servers and clients to install, start and ask, and the
program under test."""
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CROSSWIRE = os.environ.get("CROSSWIRE", str(ROOT / "target/debug/crosswire"))
# Kept from run to run, as building and fetching takes longer than the tests.
CACHE = Path(os.environ.get("CROSSWIRE_E2E_CACHE", ROOT / "target/e2e"))
WORK = Path(tempfile.mkdtemp(prefix="crosswire-e2e-"))
INSTALL_SECONDS = 600
# Begun in the background of a script, this has it ignored, and so would have every program started here.
signal.signal(signal.SIGINT, signal.default_int_handler)
REPORT = {"ok": 0, "failed": [], "skipped": []}
_say = threading.Lock()


def say(text):
    with _say:
        print(text, flush=True)


def check(name, holds, details=""):
    """Notes whether `name` holds; `details` are printed where it does not."""
    if holds:
        REPORT["ok"] += 1
        say(f"ok: {name}")
    else:
        REPORT["failed"].append(name)
        say(f"FAILED: {name}\n{details}")


def skip(why):
    REPORT["skipped"].append(why)
    say(f"skipped: {why}")


def end():
    """Ends the run: 0 if all held, 1 if something did not, 77 if nothing could be run."""
    if not os.environ.get("CROSSWIRE_E2E_KEEP"):
        shutil.rmtree(WORK, ignore_errors=True)
    say(f"{REPORT['ok']} held, {len(REPORT['failed'])} failed, {len(REPORT['skipped'])} skipped")
    for name in REPORT["failed"]:
        say(f"FAILED: {name}")
    for why in REPORT["skipped"]:
        say(f"skipped: {why}")
    sys.exit(1 if REPORT["failed"] else 0 if REPORT["ok"] else 77)


class Missing(Exception):
    """Something that cannot be installed here."""


def run_quietly(argv, **more):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=INSTALL_SECONDS, **more)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise Missing(lines[-1] if lines else f"exit status {done.returncode}")
    return done.stdout


@dataclass
class Kind:
    """One SDK: how to install it, and how to run it as a server and as a client."""

    name: str
    install: object
    serve: list
    call: list = field(default_factory=list)
    version: str = ""
    why_not: str = ""

    def prepare(self):
        try:
            self.version = self.install()
        except (Missing, OSError, subprocess.TimeoutExpired) as e:
            self.why_not = str(e)

    def __str__(self):
        return f"{self.name.split()[0]} {self.version}"


def of_python(name, package, requirement):
    home = CACHE / name.replace(" ", "-")
    python = str(home / "bin/python")

    def install():
        if not (home / "bin/pip").exists():
            run_quietly([sys.executable, "-m", "venv", str(home)])
        pip = [python, "-m", "pip", "-q", "--disable-pip-version-check", "install", "--upgrade", requirement]
        shows = [python, "-c", f"from importlib.metadata import version; print(version('{package}'))"]
        try:
            run_quietly(pip)
        except Missing:
            run_quietly(shows)  # Without network, what is there already will do.
        return run_quietly(shows).strip()

    return Kind(name, install, [python, str(HERE / "python_server.py")], [python, str(HERE / "python_client.py")])


def of_node(name, package, packages):
    home = CACHE / name.replace(" ", "-")

    def install():
        if not shutil.which("npm"):
            raise Missing("npm is not installed")
        home.mkdir(parents=True, exist_ok=True)
        (home / "package.json").write_text('{"private": true}')
        manifest = home / "node_modules" / package / "package.json"
        try:
            run_quietly(["npm", "install", "--no-audit", "--no-fund", *packages], cwd=home)
        except Missing:
            if not manifest.exists():
                raise
        for script in (HERE / "typescript").glob("*.mjs"):
            shutil.copy(script, home)
        return json.loads(manifest.read_text())["version"]

    return Kind(name, install, ["node", str(home / "server.mjs")], ["node", str(home / "client.mjs")])


def of_rust(name):
    target = CACHE / "rmcp"
    program = str(target / "debug/crosswire-e2e-rmcp")

    def install():
        manifest = HERE / "rmcp/Cargo.toml"
        run_quietly(["cargo", "build", "--locked", "--manifest-path", str(manifest), "--target-dir", str(target)])
        lock = (HERE / "rmcp/Cargo.lock").read_text()
        return lock.split('name = "rmcp"\nversion = "', 1)[1].split('"', 1)[0]

    return Kind(name, install, [program, "serve"], [program, "call"])


KINDS = [
    of_python("Python 1.26.0", "mcp", "mcp==1.26.0"),
    of_python("Python 1.x", "mcp", "mcp>=1.26,<2"),
    of_python("Python 2.x", "mcp", "mcp>=2,<3"),
    of_python("FastMCP 3.2.0", "fastmcp", "fastmcp==3.2.0"),
    of_node("TypeScript 1.x", "@modelcontextprotocol/sdk", ["@modelcontextprotocol/sdk@1", "zod"]),
    of_node(
        "TypeScript 2.x",
        "@modelcontextprotocol/client",
        [f"@modelcontextprotocol/{part}@2" for part in ("client", "server", "node")] + ["zod"],
    ),
    of_rust("rmcp"),
]


def prepare():
    """Installs every SDK; gives those that are there."""
    CACHE.mkdir(parents=True, exist_ok=True)
    threads = [threading.Thread(target=kind.prepare) for kind in KINDS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for kind in KINDS:
        if kind.why_not:
            skip(f"{kind.name}: cannot be installed: {kind.why_not}")
    return [kind for kind in KINDS if not kind.why_not]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(port, process, seconds=180):
    until = time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise RuntimeError(f"{process.args[0]} did not start on port {port}")


@contextlib.contextmanager
def serving(kind, mode="sessions"):
    """Runs a server and gives its URL."""
    port = free_port()
    argv = kind.serve + [str(port)] + ([] if mode == "sessions" else [mode])
    log = open(WORK / "server.log", "ab")
    process = subprocess.Popen(argv, stdout=log, stderr=log)
    try:
        wait_for(port, process)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


def crosswire(*args, timeout=240):
    """Runs the program under test; gives its exit status, output and errors."""
    done = subprocess.run([CROSSWIRE, *map(str, args)], capture_output=True, text=True, timeout=timeout)
    return done.returncode, done.stdout, done.stderr
