#!/usr/bin/env python3
"""Scan an archive of logs and captures on a Spark cluster: the findings of `crosswire scan`, for what does not fit
one machine. One file without further dependencies than PySpark 3.3 or later; docs/spark.md says how to submit it.

    spark-submit --files /usr/bin/crosswire crosswire_scan.py /mnt/archive --out hdfs:///findings
    spark-submit --files crosswire crosswire_scan.py s3a://logs/2026/11/ --out s3a://findings/ -- --rule 'crossed/*'

What stands behind `--` goes to `crosswire map` and `crosswire reduce`.

Steps (crosswire-map(1)): list and look, plan on the driver (with clocks told in between, where needed), map, shuffle
by share of the sessions and reduce these, where a log names sessions and is large, shuffle by lot and time, reduce,
total on the driver. Every step is a pure function of its lines, so a task that runs twice,
or on another machine, changes nothing, and a lot that is missing in the end is trouble.
"""

import argparse
import heapq
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import zlib

PROGRAM = "crosswire"
CALL = ["key", "session", "id", "method", "tool", "issued", "sent", "replied", "outcome", "delivered"]
FINDING = ["day", "service", "rule", "severity", "confidence", "session", "at", "until", "victim", "owner", "summary", "shown"]
LISTS = ["fault", "cleared", "calls"]


class Binary:
    """The program on this machine, as --files brought it; what it is asked is what it was asked on the driver."""

    def __init__(self, path, options):
        self.path, self.options = path, options

    def __call__(self, step):
        path = self.path
        if path is None:
            from pyspark import SparkFiles

            path = SparkFiles.get(PROGRAM)
        if not os.access(path, os.X_OK):
            # Some file systems lose the mode.
            os.chmod(path, 0o755)
        return [path, *step, *self.options]

    def run(self, step, lines, more=()):
        """Feeds lines (an iterable of text) and gives the lines that come out, while both go on."""
        return piped(self(step) + list(more), lines)

    def once(self, step, lines=(), statuses=(0,)):
        """All that comes out, on the driver."""
        done = subprocess.run(self(step), input="".join(f"{l}\n" for l in lines), text=True, stdout=subprocess.PIPE)
        if done.returncode not in statuses:
            raise SystemExit(f"crosswire {step[0]} ended with status {done.returncode}")
        return done.returncode, done.stdout.splitlines()


def piped(command, lines):
    """Like RDD.pipe, with an exit status other than 0 always an error, and for as long lines as there are."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=1 << 20)
    failed = []

    def feed():
        try:
            for line in lines:
                process.stdin.write(line.encode() + b"\n")
        except BrokenPipeError:
            pass
        except BaseException as e:  # of whatever the lines come from: it must not look like their end
            failed.append(e)
            process.kill()
        finally:
            try:
                process.stdin.close()
            except BrokenPipeError:
                pass

    feeding = threading.Thread(target=feed, daemon=True)
    feeding.start()
    try:
        for line in process.stdout:
            yield line.decode().rstrip("\n")
        feeding.join()
        if failed:
            raise failed[0]
        if process.wait() != 0:
            raise RuntimeError(f"{command[0]} {command[1]} ended with status {process.returncode}; its stderr says why")
    finally:
        process.kill()
        process.wait()


def is_address(path):
    """`s3a://bucket/log`, and `file:/log` as Hadoop writes what has no host."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", path) is not None


def listed(sc, addresses):
    """Files below addresses, by the file systems that Spark knows, as lines for `map --step list`."""
    jvm, conf = sc._jvm, sc._jsc.hadoopConfiguration()
    found = []
    for address in addresses:
        top = jvm.org.apache.hadoop.fs.Path(address)
        system = top.getFileSystem(conf)
        tops = system.globStatus(top)
        if not tops:
            raise SystemExit(f"{address}: nothing is there")
        for status in tops:
            folder = status.getPath().toUri().getPath()
            files = system.listFiles(status.getPath(), True)
            while files.hasNext():
                file = files.next()
                parts = file.getPath().toUri().getPath()[len(folder) :].split("/")
                if file.getLen() == 0 or any(p.startswith((".", "_")) for p in parts):
                    continue
                found.append({
                    "name": file.getPath().toString(),
                    "bytes": file.getLen(),
                    "modified_ns": file.getModificationTime() * 1000000,
                    "found": True,
                })
    return [json.dumps(f) for f in found]


def on_disk(contents, folder):
    """Writes files that came through Spark to the executor's disk: names and paths."""
    copies = {}
    for number, (name, content) in enumerate(contents):
        path = os.path.join(folder, str(number))
        with open(path, "wb") as out:
            out.write(content)
        copies[name] = path
    return copies


def with_copies(binary, step):
    """For pairs of lines and the contents that they need."""

    def run(pairs):
        for lines, contents in pairs:
            with tempfile.TemporaryDirectory(prefix="crosswire-") as folder:
                copies = os.path.join(folder, "copies.json")
                with open(copies, "w") as out:
                    json.dump(on_disk(contents, folder), out)
                yield from binary.run(step, lines, ["--copies", copies])

    return run


def spread(sc, lines, weight, parts):
    """Lines on partitions of about the same weight: the heaviest first, each where least is. Neither order nor
    place matter to what comes out."""
    heap = [(0, n, []) for n in range(max(1, min(parts, len(lines))))]
    for line in sorted(lines, key=weight, reverse=True):
        load, n, own = heapq.heappop(heap)
        own.append(line)
        heapq.heappush(heap, (load + weight(line), n, own))
    bins = [own for _, _, own in heap if own]
    return sc.parallelize(bins, max(1, len(bins))).flatMap(lambda own: own)


def look_and_map(sc, binary, lines, step, files_of, weight, parts):
    """Runs a step over its lines, next to the files that each reads."""
    local = [l for l in lines if not any(is_address(f) for f in files_of(l))]
    remote = [l for l in lines if any(is_address(f) for f in files_of(l))]
    out = spread(sc, local, weight, parts).mapPartitions(lambda own: binary.run(step, own))
    if not remote:
        return out
    # Through Spark's own file systems, whole files: those of one file alone where it is read, others by a shuffle.
    alone, several = {}, {}
    for number, line in enumerate(remote):
        files = files_of(line)
        if len(files) == 1:
            alone.setdefault(files[0], []).append(line)
        else:
            for file in files:
                several.setdefault(file, []).append(number)
    if alone:
        contents = sc.binaryFiles(",".join(sorted(alone)), parts)
        pairs = contents.map(lambda pair: (own_name(pair[0], alone), pair[1]))
        pairs = pairs.map(lambda pair: (alone[pair[0]], [pair]))
        out = out.union(pairs.mapPartitions(with_copies(binary, step)))
    if several:
        contents = sc.binaryFiles(",".join(sorted(several)), parts)
        pairs = contents.map(lambda pair: (own_name(pair[0], several), pair[1]))
        pairs = pairs.flatMap(lambda pair: [(n, pair) for n in several[pair[0]]]).groupByKey(parts)
        pairs = pairs.map(lambda pair: ([remote[pair[0]]], pair[1]))
        out = out.union(pairs.mapPartitions(with_copies(binary, step)))
    return out


def own_name(name, names):
    """binaryFiles may spell an address with one slash or three."""
    if name in names:
        return name
    bare = name.replace("file:///", "file:/")
    for own in names:
        if own.replace("file:///", "file:/") == bare:
            return own
    raise RuntimeError(f"{name}: not one of the files asked for")


def sort_key(line):
    key, ns, _ = line.split("\t", 2)
    return (key, int(ns))


def is_share(line):
    """Is it of a share of the sessions of a lot? What is left of that is of the lot."""
    return "+" in line.split("\t", 1)[0]


def shares_of(task_line):
    return sum(t.get("log", {}).get("shares", 0) for t in json.loads(task_line)["tasks"]["tasks"])


def scan(sc, options):
    from pyspark import StorageLevel

    binary = Binary(options.binary, options.rest)
    split = ["--split", options.split, "--share", options.share]
    paths = [os.path.abspath(p) for p in options.paths if not is_address(p)]
    addresses = [p for p in options.paths if is_address(p)]
    listing = []
    if paths:
        listing += binary.once(["map", "--step", "list", *split, *paths])[1]
    if addresses:
        # Whole files: Spark hands them over whole.
        listing += binary.once(["map", "--step", "list", "--split", "1024TiB"], listed(sc, addresses))[1]
    to_look = [l for l in listing if l.startswith('{"look"')]
    said = [l for l in listing if not l.startswith('{"look"')]

    def looked_bytes(line):
        look = json.loads(line)["look"]
        start, end = look.get("bytes") or (0, look["file"]["bytes"])
        return end - start

    def looked_file(line):
        return [json.loads(line)["look"]["file"]["name"]]

    parts = options.partitions or sc.defaultParallelism * 3
    looks = look_and_map(sc, binary, to_look, ["map", "--step", "look"], looked_file, looked_bytes, parts)
    looked = said + looks.collect()
    _, plan = binary.once(["map", "--step", "plan", *split], looked)
    # Clocks of what is cut by time come first, and then into the plan, by which every task has them.
    probes = [l for l in plan if l.startswith('{"probe"')]

    def of_probe(name):
        return lambda line: json.loads(line)["probe"][name]

    if probes:
        clocks = look_and_map(sc, binary, probes, ["map", "--step", "clocks"], of_probe("files"), of_probe("bytes"), parts)
        _, plan = binary.once(["map", "--step", "plan", *split], looked + clocks.collect())
    tasks = [l for l in plan if l.startswith('{"tasks"')]
    told = [l for l in plan if not l.startswith('{"tasks"')]

    def task_bytes(line):
        return json.loads(line)["tasks"]["bytes"]

    def task_files(line):
        return json.loads(line)["tasks"]["files"]

    shuffled = sc.accumulator(0)

    def keyed(line):
        shuffled.add(len(line))
        return (sort_key(line), line)

    sightings = look_and_map(sc, binary, tasks, ["map"], task_files, task_bytes, parts)
    reducers = options.partitions or parts

    def grouped(lines):
        # All of a key to one partition, by the key alone; sorted by key and time there.
        pairs = lines.map(keyed).repartitionAndSortWithinPartitions(reducers, lambda key: hash_of(key[0]))
        return pairs.values()

    shares = sum(map(shares_of, tasks))
    if shares:
        # Sessions first, each share of them anywhere; what is left of them goes where the rest of their lot goes.
        sightings = sightings.persist(StorageLevel.DISK_ONLY)
        left = grouped(sightings.filter(is_share)).mapPartitions(lambda own: binary.run(["reduce", "--shares"], own))
        sightings = sightings.filter(lambda line: not is_share(line)).union(left)
    folded = grouped(sightings).mapPartitions(lambda own: binary.run(["reduce"], own))
    folded = folded.cache() if options.out else folded
    if options.out:
        write(sc, folded, options.out)
        lots = folded.filter(lambda l: l.startswith('{"lot"')).collect()
    elif options.ndjson:
        lots = []
        with open(options.ndjson, "w") as out:
            for line in folded.toLocalIterator():
                (lots.append(line) if line.startswith('{"lot"') else out.write(line + "\n"))
    else:
        lots = folded.filter(lambda l: l.startswith('{"lot"')).collect()
    total = ["reduce", "--total"]
    status, text = binary.once(total, told + lots, (0, 1, 2))
    print("\n".join(text))
    if options.ndjson:
        _, summary = binary.once([*total, "--format", "ndjson"], told + lots, (0, 1, 2))
        with open(options.ndjson, "a") as out:
            out.write("".join(l + "\n" for l in summary))
    if options.measures:
        with open(options.measures, "w") as out:
            json.dump({"mapped_bytes": sum(map(task_bytes, tasks)), "shuffled_bytes": shuffled.value, "lots": len(lots), "tasks": len(tasks), "shares": shares}, out)
    return status


def hash_of(key):
    """The same on every machine, whatever PYTHONHASHSEED says."""
    return zlib.crc32(key.encode())


def rows(kind):
    """Objects of one kind as rows, with files by name."""

    def of(lines):
        names = {}
        for line in lines:
            o = json.loads(line)
            lot = o.get("lot")
            if o.get("type") == "input":
                names[lot, o["input"]] = o["name"]
            elif o.get("type") == kind:
                yield row(o, names, lot)

    return of


def row(o, names, lot):
    is_call = o["type"] == "call"
    places = o.get("sightings" if is_call else "evidence") or []
    out = {"lot": lot}
    for name in CALL if is_call else FINDING:
        value = o.get(name)
        # An id keeps its JSON type: 7 is not "7".
        out[name] = json.dumps(value) if name == "id" and value is not None else value
    for name in [] if is_call else LISTS:
        out[name] = [str(v) for v in o.get(name) or []]
    place = lambda e: "{}:{}".format(names.get((lot, e.get("input")), "?"), e.get("frame") or e.get("line"))
    out["evidence"] = [place(e) for e in places if e.get("input") is not None]
    out["json"] = json.dumps(o)
    return out


def write(sc, folded, out):
    """Findings, windows and calls as Parquet. Whole files take the place of an earlier scan's."""
    from pyspark.sql import SparkSession
    from pyspark.sql.types import ArrayType, StringType, StructField, StructType

    session = SparkSession(sc)
    text = lambda name: StructField(name, StringType())
    texts = lambda name: StructField(name, ArrayType(StringType()))
    tables = {
        "findings": ("finding", ["lot", *FINDING], LISTS + ["evidence"]),
        "calls": ("call", ["lot", *CALL], ["evidence"]),
    }
    for table, (kind, single, lists) in tables.items():
        schema = StructType([*map(text, single), *map(texts, lists), text("json")])
        names = schema.fieldNames()
        data = folded.mapPartitions(rows(kind)).map(lambda r, names=names: tuple(r[n] for n in names))
        session.createDataFrame(data, schema).write.mode("overwrite").parquet(out.rstrip("/") + "/" + table)


def arguments(argv):
    argv, rest = (argv[: argv.index("--")], argv[argv.index("--") + 1 :]) if "--" in argv else (argv, [])
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], epilog="What stands behind -- goes to crosswire.")
    parser.add_argument("paths", nargs="+", help="folders, files, patterns that every machine sees, or addresses (s3a://, gs://, abfss://, hdfs://)")
    parser.add_argument("--out", help="folder or address for findings/ and calls/ as Parquet")
    parser.add_argument("--ndjson", help="file on the driver for all findings, windows and calls, the summary last")
    parser.add_argument("--split", default="64MiB", help="bytes of a log that one task reads [64MiB]")
    parser.add_argument("--share", default="8MiB", help="bytes of a lot for each share of the sessions of a log, which are folded first [8MiB]")
    parser.add_argument("--partitions", type=int, help="tasks of a stage [three a core]")
    parser.add_argument("--binary", help="crosswire where every machine has it [what --files brought]")
    parser.add_argument("--measures", help="file on the driver for counts of bytes")
    options = parser.parse_args(argv)
    options.rest = rest
    return options


def main(argv):
    options = arguments(argv)
    from pyspark import SparkContext

    sc = SparkContext.getOrCreate()
    try:
        return scan(sc, options)
    finally:
        sc.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
