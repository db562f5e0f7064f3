#!/usr/bin/env bash
# Probe, replay and serve against real servers and a real client of the official Python SDK, which
# are installed into a folder of their own. Where they cannot be installed (no python3, no network),
# says so and ends with status 77. Takes one to two minutes.
#
# usage: probe_real_servers.sh [CROSSWIRE]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
crosswire=${1:-$here/../../target/debug/crosswire}
dir=$(mktemp -d)
pids=()
stop() {
    for pid in "${pids[@]+"${pids[@]}"}"; do kill "$pid" 2>/dev/null || true; done
    rm -rf "$dir"
}
trap stop EXIT

skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*" >&2; exit 1; }

command -v python3 >/dev/null || skip "python3 is not installed"
install() {
    python3 -m venv "$dir/$1" && timeout 90 "$dir/$1/bin/pip" -q --disable-pip-version-check install "mcp$2" >"$dir/pip-$1.log" 2>&1
}
install new '>=2,<3' &
installing=$!
install old ==1.26.0 || { wait || true; skip "mcp 1.26.0 cannot be installed: $(tail -1 "$dir/pip-old.log" 2>/dev/null)"; }
has_new=true
wait "$installing" || { has_new=false; echo "skipped: mcp 2.x cannot be installed"; }

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# Starts a server and sets `url`.
serve() {
    local venv=$1; shift
    local port; port=$(free_port)
    "$dir/$venv/bin/python" "$here/server.py" "$port" "$@" >"$dir/server.log" 2>&1 &
    pids+=($!)
    url=http://127.0.0.1:$port/mcp
    for _ in $(seq 150); do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && return
        sleep 0.2
    done
    tail -5 "$dir/server.log" >&2
    fail "the server did not start"
}

# probe NAME STATUS CHECK: runs a probe, which must end so, and whose report must satisfy CHECK.
probe() {
    local name=$1 expected=$2 check=$3 status=0
    "$crosswire" probe "$url" --batch 3 --repetitions 1 --slow 60ms --format json -w "$dir/probe.pcapng" >"$dir/report.json" || status=$?
    [ "$status" = "$expected" ] || { cat "$dir/report.json" >&2; fail "$name: exit status $status, expected $expected"; }
    python3 - "$dir/report.json" "$check" <<'P' || fail "$name: $check"
import json, sys
report = json.load(open(sys.argv[1]))
rows = report["configurations"]
faults = ("wrong_ids", "wrong_bodies", "other_session", "wrong_stream", "duplicates", "lost")
red = {r["kind"] for r in rows if any(r[f] for f in faults)}
ids_repeat = {r["kind"] for r in rows if r["collided"] is not None}
seen = all(c["passed"] for c in report["self_check"]) and len(report["self_check"]) == 5
sys.exit(not (seen and eval(sys.argv[2])))
P
    echo "ok: $name: $(python3 -c 'import json, sys; s = json.load(open(sys.argv[1]))["summary"]; print(s["calls"], "calls,", s["wrong_bodies"], "wrong bodies,", s["wrong_ids"], "wrong ids,", s["lost"], "lost")' "$dir/report.json")"
}

crosses='red and red <= ids_repeat and "collide-first-ends-first" in red'
serve old
probe "mcp 1.26.0 with sessions crosses colliding ids and nothing else" 1 "$crosses"
cp "$dir/probe.pcapng" "$dir/crossed.pcapng"
"$crosswire" analyze "$dir/crossed.pcapng" --format json --rule crossed/id-collision >"$dir/analysis.json" || true
found=$(python3 -c 'import json, sys; print(len(json.load(open(sys.argv[1]))["findings"]))' "$dir/analysis.json")
[ "$found" -gt 0 ] || fail "the recording of the probe does not show the collision"
echo "ok: analyze finds $found collisions in the recording"

# Those calls cross again with sessions, and not without.
replay() {
    local status=0
    "$crosswire" replay "$dir/crossed.pcapng" --to "$url" --tool 'slow_echo' --speed 2 --timeout 5s >"$dir/replay.txt" || status=$?
    [ "$status" = "$1" ] || { cat "$dir/replay.txt" >&2; fail "replay: exit status $status, expected $1"; }
    echo "ok: replay: $(head -1 "$dir/replay.txt")"
}
replay 1
serve old stateless
probe "mcp 1.26.0 without sessions is clean" 0 'not red'
replay 0
if $has_new; then
    serve new
    probe "mcp 2.x with sessions crosses colliding ids and nothing else" 1 "$crosses"
fi

# A real client against a played server: what it does with each fault.
reply() { printf '{"method":"tools/call","tool":"%s","arguments":{},"stream":true,"messages":[{"after_ms":20,"message":{"jsonrpc":"2.0","id":0,"result":{"content":[{"type":"text","text":"of %s"}]}}}]}' "$1" "$1"; }
client() {
    local fault=$1 expected=$2 played
    printf '{"schema":"crosswire.script/1","replies":[%s,%s],"faults":[%s]}' "$(reply a)" "$(reply b)" "$fault" >"$dir/script.json"
    rm -f "$dir/serve.log"
    "$crosswire" serve "$dir/script.json" --listen "127.0.0.1:$(free_port)" >"$dir/served.txt" 2>"$dir/serve.log" &
    played=$!
    for _ in $(seq 100); do
        grep -q 'http://' "$dir/serve.log" 2>/dev/null && break
        sleep 0.1
    done
    local at; at=$(grep -o 'http://[^ ]*' "$dir/serve.log")
    timeout 30 "$dir/old/bin/python" "$here/client.py" "$at" a b >"$dir/client.txt" 2>"$dir/client.log" || true
    kill -INT "$played"
    wait "$played" || fail "serve did not end cleanly"
    grep -q "1 faults injected\|2 faults injected" "$dir/served.txt" || { cat "$dir/served.txt" >&2; fail "$fault: was not injected"; }
    local got; got=$(paste -sd'|' "$dir/client.txt")
    [[ $got =~ $expected ]] || { cat "$dir/served.txt" "$dir/client.log" >&2; fail "$fault: the client said '$got', expected '$expected'"; }
    echo "ok: $fault: the client: $got"
}
client '{"tool":"a","do":"swap"}' '^a: of b\|b: of a$'
client '{"tool":"a","do":"hang"}' '^a: TimeoutError\|b: of b$'
client '{"tool":"a","do":"delay","ms":5000}' '^a: TimeoutError\|b: of b$'
client '{"tool":"a","do":"duplicate"}' '^a: of a\|b: of b$'
client '{"tool":"a","do":"wrong-id","id":99}' '^a: TimeoutError\|b: of b$'
client '{"tool":"a","do":"drop"}' '^a: (TimeoutError|McpError)\|b: of b$'
echo "all passed"
