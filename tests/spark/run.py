#!/usr/bin/env python3
"""What Spark finds is what `crosswire scan` finds, field by field: however many partitions, wherever logs are cut,
with executors that die and tasks that run twice. And what goes through the shuffle, and how fast the map is.

    tests/spark/run.py CROSSWIRE [ARCHIVE]

Without an archive a small one is made. Installs PySpark from PyPI into target/spark; exit status 77: it, or Java,
could not be installed.
"""

import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
VENV = ROOT / "target/spark/venv"
SCRIPT = ROOT / "spark/crosswire_scan.py"
PYSPARK = "pyspark==3.5.*"


def installed():
    """This program again, with PySpark; or the exit status 77."""
    python = VENV / "bin/python"
    if subprocess.run([python, "-c", "import pyspark"], stderr=subprocess.DEVNULL).returncode if python.exists() else 1:
        made = subprocess.run([sys.executable, "-m", "venv", VENV])
        if made.returncode or subprocess.run([VENV / "bin/pip", "install", "--quiet", PYSPARK]).returncode:
            print("PySpark could not be installed")
            sys.exit(77)
    if not shutil.which("java"):
        if os.getuid() == 0 and shutil.which("apt-get"):
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            subprocess.run(["apt-get", "update"], **quiet)
            subprocess.run(["apt-get", "install", "-y", "--no-install-recommends", "openjdk-17-jre-headless"], **quiet)
        if not shutil.which("java"):
            print("Java could not be installed")
            sys.exit(77)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = str(python)
    os.execv(python, [str(python), *sys.argv])


def lines_of(host, start, seconds, clients, random):
    """A gateway's access log: sessions, calls, bad answers, and for one client in three a stale session."""
    out = []
    for client in range(clients):
        session, is_new, at = f"{random.getrandbits(128):032x}", True, start + random.random() * 5
        over = False
        while at < start + seconds:
            status, asked, given = 200, session, "-"
            if is_new:
                asked, given = "-", session
            elif client % 3 == 0 and not over and at > start + seconds / 2:
                status, over = 404, True
            elif random.random() < 0.02:
                status = 502
            when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + "+00:00"
            out.append((at, json.dumps({
                "time_iso8601": when, "msec": f"{at:.3f}", "remote_addr": f"10.{host}.{client // 250}.{client % 250}",
                "request_method": "POST", "request_uri": "/mcp", "status": status, "body_bytes_sent": 300,
                "request_time": "0.050", "http_mcp_session_id": asked, "sent_http_mcp_session_id": given,
                "http_user_agent": "node",
            })))
            if is_new:
                is_new = False
            if status == 404:
                session, is_new = f"{random.getrandbits(128):032x}", True
            at += 1 + random.random() * 9
    return [line for _, line in sorted(out)]


def small_archive(folder):
    import bz2
    import gzip
    import random

    numbers = random.Random(10)
    for host in (1, 2):
        lines = lines_of(host, 1791158400 + host * 100, 3000, 60, numbers)
        text = ("\n".join(lines) + "\n").encode()
        third = len(text) // 3
        to = folder / f"edge-{host}/gateway"
        to.mkdir(parents=True)
        # Torn within a line.
        (to / "access.log.2.gz").write_bytes(gzip.compress(text[:third]))
        (to / "access.log.1").write_bytes(text[third : 2 * third + 5])
        (to / "access.log").write_bytes(text[2 * third + 5 :])
    (folder / "copy").mkdir()
    (folder / "copy/access.log.bz2").write_bytes(bz2.compress(text[:third]))
    for case in ("02-crossed-id-collision", "06b-orphan-server-killed", "10a-raw-body-swap"):
        shutil.copytree(ROOT / "fixtures" / case, folder / case)


class Found:
    """Findings, windows and calls with files by name, and the summary, of NDJSON."""

    nameless = False

    def without_keys(self):
        """Keys of calls end with what names of files make of them."""
        short = lambda row: re.sub(r'"(c\d+)-[0-9a-f]{12}"', r'"\1"', row)
        self.rows = {kind: sorted(map(short, rows)) for kind, rows in self.rows.items()}

    def __init__(self, path):
        names, self.rows, self.summary = {}, {"finding": [], "window": [], "call": []}, {}
        for line in open(path):
            o = json.loads(line)
            lot = o.pop("lot", None)
            kind = o.get("type")
            if kind == "input":
                names[lot, o["input"]] = o["name"]
            elif kind == "summary":
                self.summary = o
            elif kind in self.rows:
                for place in o.get("evidence", []) + o.get("sightings", []):
                    if place.get("input") is not None:
                        place["input"] = names[lot, place["input"]]
                self.rows[kind].append(json.dumps(o, sort_keys=True))
        for rows in self.rows.values():
            rows.sort()

    def check(self, other, when):
        if other.nameless:
            self.without_keys()
        for kind, rows in other.rows.items():
            mine = self.rows[kind]
            if mine != rows:
                only = [sorted(set(a) - set(b))[:2] for a, b in ((mine, rows), (rows, mine))]
                sys.exit(f"{when}: {kind}: {len(mine)} rows, not {len(rows)}; only here {only[0]}; only there {only[1]}")
        for name, value in other.summary.items():
            if self.summary.get(name) != value:
                sys.exit(f"{when}: summary: {name} is {self.summary.get(name)}, not {value}")


# In the place of crosswire: what happens to the first task of a step.
WRAPPER = """#!/usr/bin/env python3
import os, signal, subprocess, sys, time
real, folder, victim, action = {real!r}, {folder!r}, {victim!r}, {action!r}
step = sys.argv[1] if "--step" not in sys.argv and "--total" not in sys.argv else ""
if "--shares" in sys.argv:
    step = "shares"
with open(folder + "/ran", "a") as out:
    out.write(step + "\\n")

def is_first():
    try:
        os.close(os.open(folder + "/" + step, os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        return False

def executor():
    pid = os.getppid()
    while pid > 1:
        if b"CoarseGrainedExecutorBackend" in open(f"/proc/{{pid}}/cmdline", "rb").read():
            return pid
        pid = int(open(f"/proc/{{pid}}/stat").read().rsplit(")", 1)[1].split()[1])
    sys.exit("no executor above this process")

if step and step in victim.split() and is_first():
    if action == "kill":
        # Some of what comes out has gone on already.
        child = subprocess.Popen([real, *sys.argv[1:]], stdout=subprocess.PIPE)
        sys.stdout.buffer.write(child.stdout.read(10000))
        sys.stdout.flush()
        os.kill(executor(), signal.SIGKILL)
        child.kill()
        sys.exit(1)
    time.sleep(8)
os.execv(real, [real, *sys.argv[1:]])
"""


class Run:
    def __init__(self, program, work):
        sys.path.insert(0, str(SCRIPT.parent))
        import crosswire_scan

        self.script, self.program, self.work, self.sc = crosswire_scan, str(program), work, None

    def start(self, master, **conf):
        from pyspark import SparkConf, SparkContext

        if self.sc:
            self.sc.stop()
        settings = SparkConf().setMaster(master).setAppName("crosswire").set("spark.ui.enabled", "false")
        settings.set("spark.driver.host", "127.0.0.1")
        for name, value in conf.items():
            settings.set(name.replace("_", "."), value)
        self.sc = SparkContext(conf=settings)
        self.sc.setLogLevel("OFF")
        self.sc.addPyFile(str(SCRIPT))

    def scan(self, archive, *options):
        """What `crosswire scan` finds."""
        out = self.work / "scan.ndjson"
        with open(out, "w") as file:
            began = time.monotonic()
            done = subprocess.run([self.program, "scan", "--format", "ndjson", *options, archive], stdout=file, stderr=subprocess.DEVNULL)
            self.took = time.monotonic() - began
        assert done.returncode in (0, 1, 2), done
        return Found(out), done.returncode

    def spark(self, whole, when, *arguments, program=None):
        """What Spark finds: fails if it is not the same."""
        found, status = whole
        out, measures = self.work / "spark.ndjson", self.work / "measures.json"
        options = self.script.arguments([
            "--binary", program or self.program, "--ndjson", str(out), "--measures", str(measures), *map(str, arguments)])
        began = time.monotonic()
        with open(self.work / "text", "w") as text:
            stdout, sys.stdout = sys.stdout, text
            try:
                ended = self.script.scan(self.sc, options)
            finally:
                sys.stdout = stdout
        took = time.monotonic() - began
        Found(out).check(found, when)
        if ended != status:
            sys.exit(f"{when}: status {ended}, not {status}")
        measured = json.loads(measures.read_text())
        share = measured["shuffled_bytes"] / max(1, measured["mapped_bytes"])
        print(f"{when}: {len(found.rows['finding'])} findings, all fields equal; {took:.1f} s, {measured['lots']} lots, "
              f"{measured['tasks']} tasks, {measured['shares']} shares, shuffle {100 * share:.1f} % of {measured['mapped_bytes'] >> 20} MiB", flush=True)
        self.shares = measured["shares"]
        return share

    def wrapper(self, victim, action):
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.work))
        path = folder / "crosswire"
        path.write_text(WRAPPER.format(real=self.program, folder=str(folder), victim=victim, action=action))
        path.chmod(0o755)
        return path


def logs_and_captures(archive, work):
    """Two archives out of one, as links: what is plain log, and what is plain capture."""
    folders = {}
    for kind, endings in (("logs", (".log", ".jsonl")), ("captures", (".pcap",))):
        folders[kind] = work / kind
        for number, file in enumerate(sorted(p for p in archive.rglob("*") if p.is_file())):
            wanted = file.name.endswith(endings) or (kind == "logs" and ".log." in file.name)
            if wanted and "damaged" not in file.parts:
                to = folders[kind] / f"{number}"
                to.mkdir(parents=True)
                os.link(file, to / file.name) if os.stat(file).st_dev == os.stat(work).st_dev else shutil.copy(file, to)
    return folders["logs"], folders["captures"]


def two_clocks(folder):
    """Logs of two proxies that saw the same sessions, the inner one seven seconds fast and the only one in the end."""
    import random

    start = 1791158400
    edge = lines_of(5, start, 6000, 14, random.Random(5))
    inner = lines_of(5, start + 7, 6000, 14, random.Random(5))
    for name, lines in (("edge", edge[: len(edge) * 4 // 10]), ("inner", inner)):
        (folder / name).mkdir(parents=True)
        (folder / name / "access.log").write_text("\n".join(lines) + "\n")
    return folder


def map_rate(run, archive):
    """How fast one core maps, in bytes a second, against `scan --jobs 1`."""

    def seconds(*command, input=None):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        out = subprocess.run([run.program, *command], input=input, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return out, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    listed, _ = seconds("map", "--step", "list", str(archive))
    looked, look = seconds("map", "--step", "look", input=listed)
    probes, _ = seconds("map", "--step", "plan", input=looked)
    clocks, _ = seconds("map", "--step", "clocks", input=probes)
    plan, _ = seconds("map", "--step", "plan", input=looked + clocks)
    records, took = seconds("map", "--jobs", "1", input=plan)
    order = lambda line: (line.split(b"\t", 2)[0], int(line.split(b"\t", 2)[1]))
    _, fold = seconds("reduce", "--jobs", "1", input=b"".join(l + b"\n" for l in sorted(records.splitlines(), key=order)))
    # The least of three: other work on the machine only adds.
    took = min(took, *(seconds("map", "--jobs", "1", input=plan)[1] for _ in range(2)))
    whole = min(seconds("scan", "--jobs", "1", str(archive))[1] for _ in range(3))
    tasks = [json.loads(l)["tasks"]["bytes"] for l in plan.splitlines() if l.startswith(b'{"tasks"')]
    mib = sum(tasks) / (1 << 20)
    print(f"{archive.name}: {mib:.0f} MiB, CPU seconds: scan --jobs 1 {whole:.2f}, look {look:.2f}, map {took:.2f}, reduce "
          f"{fold:.2f}; the map has {100 * whole / took:.0f} % of the scan's rate, look and map {100 * whole / (look + took):.0f} %", flush=True)
    return whole / took if mib >= 8 else 1


def hosts(run, work):
    """A cluster of two hosts: a task is tried twice only on another host than its first."""
    import pyspark
    import socket

    home = pathlib.Path(pyspark.__file__).parent
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    address = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    commands = [("127.0.0.1", [f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"])]
    for host in ("127.0.0.1", "127.0.0.2"):
        own = work / f"worker-{host}"
        commands.append((host, [f"{deploy}.worker.Worker", "--host", host, "--cores", "1", "--memory", "1g",
                                "--webui-port", "0", "--work-dir", str(own), address]))
    log = open(work / "cluster.log", "w")
    started = []
    for host, command in commands:
        env = {**os.environ, "SPARK_LOCAL_IP": host, "SPARK_HOME": str(home)}
        started.append(subprocess.Popen([home / "bin/spark-class", *command], env=env, stdout=log, stderr=log))
        time.sleep(3)
    return address, started


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="crosswire-spark-", dir=os.environ.get("TMPDIR")) as folder:
        work = pathlib.Path(folder)
        if len(sys.argv) > 2:
            archive = pathlib.Path(sys.argv[2]).resolve()
        else:
            archive = work / "archive"
            archive.mkdir()
            small_archive(archive)
        run = Run(program, work)
        run.start("local-cluster[2,1,1024]")
        whole = run.scan(archive)
        assert len(whole[0].rows["finding"]) > 50
        for partitions in (1, 2, 7):
            run.spark(whole, f"{partitions} partitions", archive, "--partitions", partitions)
        run.spark(whole, "cut anywhere", archive, "--split", "1000003", "--share", "500000", "--partitions", 5)
        assert run.shares > 20, "sessions are not dealt"
        for victim in ("map", "shares", "reduce"):
            killer = run.wrapper(victim, "kill")
            run.spark(whole, f"an executor killed in {victim}", archive, "--partitions", 3, "--share", "2MiB", program=str(killer))
            assert (killer.parent / victim).exists(), "nothing was killed"
        clocks, cut = two_clocks(work / "clocks"), ["--memory", "32MiB", "--overlap", "3m"]
        listed = subprocess.run([program, "map", "--step", "list", clocks], stdout=subprocess.PIPE).stdout
        for step in ("look", "plan"):
            listed = subprocess.run([program, "map", "--step", step, *cut], input=listed, stdout=subprocess.PIPE).stdout
        assert listed.startswith(b'{"probe"'), "it is not cut"
        only = run.scan(clocks, *cut)
        assert len(only[0].rows["window"]) > 3
        run.spark(only, "two clocks, cut by time", clocks, "--partitions", 3, "--split", "700001", "--", *cut)
        logs, captures = logs_and_captures(archive, work)
        only = run.scan(logs)
        share = run.spark(only, "logs", logs)
        assert share <= 0.40, share
        # As Spark's own file systems hand them over.
        part = sorted(logs.iterdir())[:4]
        some = work / "some"
        some.mkdir()
        for number in part:
            shutil.copytree(number, some / number.name)
        run.spark(renamed(run.scan(some), str(some), f"file:{some}"), "by address", f"file://{some}")
        # Lots cut in slices of time, and cut where it hurts.
        options = ["--memory", "24MiB", "--overlap", "10m"]
        run.spark(run.scan(some, *options), "slices of time", some, "--split", "99991", "--", *options)
        parquet(run, some)
        submitted(run, some, work)
        if any(captures.rglob("*.pcap")):
            share = run.spark(run.scan(captures), "captures", captures)
            assert share <= 0.05 or not len(sys.argv) > 2, share
        for folder in (logs, captures):
            if len(sys.argv) > 2:
                assert map_rate(run, folder) >= 0.8
        run.sc.stop()
        run.sc = None
        address, started = hosts(run, work)
        try:
            run.start(address, spark_speculation="true", spark_speculation_interval="100ms",
                      spark_speculation_quantile="0.1", spark_speculation_multiplier="1.1",
                      spark_speculation_task_duration_threshold="2s", spark_executor_memory="1g")
            slow = run.wrapper("map reduce", "sleep")
            run.spark(run.scan(some), "tasks tried twice", some, "--partitions", 2, "--split", "100003", "--share", "200000", program=str(slow))
            ran = (slow.parent / "ran").read_text().split()
            print(f"maps run {ran.count('map')} times for 2 tasks, reduces {ran.count('reduce')}")
            assert ran.count("map") > 2 and ran.count("reduce") > 2, "nothing ran twice"
            run.sc.stop()
        finally:
            for process in started:
                process.terminate()
    print("what Spark finds is what scan finds")


def renamed(whole, old, new):
    """The same findings under other names of files."""
    found, status = whole
    text = lambda row: row.replace(f'"{old}/', f'"{new}/').replace(f'"{old}"', f'"{new}"')
    found.rows = {kind: sorted(map(text, rows)) for kind, rows in found.rows.items()}
    found.without_keys()
    found.summary, found.nameless = {}, True
    return found, status


def parquet(run, archive):
    """What is written is what was found."""
    from pyspark.sql import SparkSession

    found, _ = run.scan(archive)
    out = run.work / "parquet"
    options = run.script.arguments([str(archive), "--binary", run.program, "--out", str(out)])
    with open(os.devnull, "w") as null:
        stdout, sys.stdout = sys.stdout, null
        try:
            run.script.scan(run.sc, options)
        finally:
            sys.stdout = stdout
    session = SparkSession(run.sc)
    for table, kind in (("findings", "finding"), ("calls", "call")):
        read = session.read.parquet(str(out / table))
        assert read.count() == len(found.rows[kind]), table
        assert "evidence" in read.columns and read.filter("size(evidence) > 0").count() > 0
    print("findings and calls as Parquet: as many as were found", flush=True)


def submitted(run, archive, work):
    """As docs/spark.md says: the program travels with the job."""
    import pyspark

    submit = pathlib.Path(pyspark.__file__).parent / "bin/spark-submit"
    binary = work / "crosswire"
    shutil.copy(run.program, binary)
    command = [submit, "--master", "local-cluster[1,1,1024]", "--conf", "spark.ui.enabled=false", "--files", binary,
               SCRIPT, archive, "--", "--rule", "stale/*"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    scan = subprocess.run([run.program, "scan", archive, "--rule", "stale/*"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert done.returncode == scan.returncode, done.stderr[-3000:]
    assert done.stdout == scan.stdout, (done.stdout, scan.stdout)
    print("submitted with --files: the tables of scan", flush=True)


if __name__ == "__main__":
    if pathlib.Path(sys.prefix).resolve() != VENV.resolve():
        installed()
    main()
