#!/usr/bin/env bash
# What `crosswire scan --out` writes is what DuckDB reads: types as docs/scan.md says, as many rows as
# the summary counts, and every query of docs/scan.md runs. Takes a program that has the feature parquet, else builds one.
# Exit status 77: DuckDB cannot be installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv" >/dev/null 2>&1 || { echo "python3 -m venv does not work here"; exit 77; }
"$work/venv/bin/pip" install --quiet duckdb || { echo "duckdb could not be installed"; exit 77; }

[ $# -gt 0 ] || cargo build --locked --features parquet
program=$(realpath "${1:-target/debug/crosswire}")
mkdir -p "$work/archive/a" "$work/archive/b" "$work/archive/c"
cp fixtures/02-crossed-id-collision/* "$work/archive/a"
cp fixtures/04-stale-404-window/*.log "$work/archive/b"
tar -C fixtures/06b-orphan-server-killed -czf "$work/archive/c/export.tar.gz" .
status=0
"$program" scan "$work/archive" --out "$work/out" --format ndjson >"$work/scan.ndjson" || status=$?
[ "$status" = 1 ] || { echo "scan: exit status $status, expected 1 (findings)"; exit 1; }

cd "$work/out"
DOCS="$OLDPWD/docs/scan.md" SCAN="$work/scan.ndjson" "$work/venv/bin/python" - <<'PYTHON'
import json, os, re
import duckdb

docs = open(os.environ["DOCS"]).read()
lines = [json.loads(line) for line in open(os.environ["SCAN"])]
summary = lines[-1]
findings = [line for line in lines if line["type"] == "finding"]
read = "read_parquet('{}/*/*.parquet', hive_partitioning = true)"
for table in ("calls", "exchanges"):
    section = docs.split(f"### {table}\n")[1].split("\n#")[0]
    told = dict(re.findall(r"^\| `(\w+)` \| ([A-Z ]+?) \|", section, re.M)) | {"day": "DATE"}
    found = {row[0]: row[1] for row in duckdb.sql(f"DESCRIBE SELECT * FROM {read.format(table)}").fetchall()}
    assert found == told, (table, set(found.items()) ^ set(told.items()))
    codecs = duckdb.sql(f"SELECT DISTINCT compression FROM parquet_metadata('{table}/*/*.parquet')").fetchall()
    assert codecs == [("ZSTD",)], codecs

def one(sql):
    return duckdb.sql(sql).fetchall()[0][0]

calls = read.format("calls")
assert one(f"SELECT count(*) FROM {calls}") == summary["calls"] > 20, summary["calls"]
assert one(f"SELECT count(*) FROM {calls} WHERE CAST(sent AT TIME ZONE 'UTC' AS DATE) <> day") == 0
assert one("SELECT count(*) FROM read_csv('findings.csv', header = true)") == len(findings) == summary["findings"]
victims = [f["victim"] for f in findings if f["victim"]]
known = {row[0] for row in duckdb.sql(f"SELECT call FROM {calls}").fetchall()}
assert victims and set(victims) <= known, "findings cite calls that are not in the table"
crossed = one(f"SELECT count(*) FROM {calls} WHERE delivered = 'foreign'")
assert crossed > 0, "the crossed reply of the fixture is not in the table"

queries = re.findall(r"```sql\n(.*?)```", docs, re.S)
assert len(queries) == 3
for query in queries:
    rows = duckdb.sql(query.rstrip().rstrip(";")).fetchall()
    assert rows, query
print(f"{summary['calls']} calls, {len(findings)} findings, {len(queries)} queries: as DuckDB reads them")
PYTHON
