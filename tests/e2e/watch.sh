#!/usr/bin/env bash
# Watching a log that logrotate rotates while it grows, by `create` and by `copytruncate`: the finding comes once and is
# the same. With root also a live capture in a ring of files that is watched. Ends with status 77 where logrotate is not
# installed and cannot be.
#
# usage: watch.sh [CROSSWIRE]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
crosswire=$(realpath "${1:-$here/../../target/debug/crosswire}")
dir=$(mktemp -d)
pids=()
stop() {
    for pid in "${pids[@]+"${pids[@]}"}"; do kill "$pid" 2>/dev/null || true; done
    rm -rf "$dir"
}
trap stop EXIT
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*" >&2; exit 1; }
PATH=$PATH:/usr/sbin:/sbin
if ! command -v logrotate >/dev/null; then
    [ "$(id -u)" = 0 ] && (apt-get update && apt-get install -y --no-install-recommends logrotate) >/dev/null 2>&1 || skip "logrotate is not installed"
fi
chmod 755 "$dir"
case=$here/../../fixtures/04-stale-404-window

# Waits until a line is in a file.
await() {
    for _ in $(seq 300); do
        grep -q "$1" "$2" 2>/dev/null && return
        sleep 0.1
    done
    fail "no $1 in $(basename "$2"): $(cat "$2")"
}

for how in create copytruncate none; do
    log=$dir/$how.log told=$dir/$how.jsonl
    printf '%s {\n  rotate 3\n  nocompress\n  %s\n}\n' "$log" "$([ "$how" = copytruncate ] && echo copytruncate || echo create)" >"$dir/$how.conf"
    chmod 644 "$dir/$how.conf"
    : >"$log"
    "$crosswire" watch "$log" --input-format json-access --settle 1s --findings-log "$told" >"$dir/$how.txt" 2>"$dir/$how.err" &
    watch=$!
    pids+=("$watch")
    await watching "$dir/$how.err"
    n=0
    while IFS= read -r line; do
        printf '%s\n' "$line" >>"$log"
        n=$((n + 1))
        if [ "$how" != none ] && [ $((n % 7)) = 0 ]; then
            sleep 0.4
            logrotate -f -s "$dir/$how.state" "$dir/$how.conf"
        fi
    done <"$case/access.json.log"
    await finding "$told"
    sleep 2
    kill -INT "$watch"
    wait "$watch" || fail "the watch ended with status $?"
    python3 -c '
import json, sys
rows = [json.loads(l) for l in open(sys.argv[1])]
print(sorted((r["rule"], r["at"]) for r in rows))' "$told" >"$dir/$how.findings"
done
cmp "$dir/create.findings" "$dir/none.findings" || fail "logrotate's create: $(cat "$dir"/*.findings)"
cmp "$dir/copytruncate.findings" "$dir/none.findings" || fail "copytruncate: $(cat "$dir"/*.findings)"
echo "ok: the same findings, each once, through logrotate's create and copytruncate: $(cat "$dir/none.findings")"

if [ "$(id -u)" != 0 ] || [ ! -x "$(dirname "$crosswire")/crosswire-capture" ]; then
    echo "skipped: a watched capture: no root, or crosswire-capture was not built"
    exit 0
fi
"$crosswire" capture -i lo -w "$dir/try.pcapng" --for 100ms 2>/dev/null || { echo "skipped: nothing can be captured here"; exit 0; }
printf '{"schema":"crosswire.script/1","replies":[{"method":"tools/call","tool":"%s","arguments":{},"stream":true,"messages":[{"after_ms":20,"message":{"jsonrpc":"2.0","id":0,"result":{"content":[{"type":"text","text":"the reply"}]}}}]}],"faults":[{"call":4,"do":"drop"}]}' t >"$dir/script.json"
"$crosswire" serve "$dir/script.json" --listen 127.0.0.1:0 >/dev/null 2>"$dir/serve.err" &
pids+=($!)
await http:// "$dir/serve.err"
url=$(grep -o 'http://[^ ]*' "$dir/serve.err")
port=$(echo "$url" | sed 's#.*:\([0-9]*\)/.*#\1#')
"$crosswire" capture -i lo -f "tcp port $port" -w "$dir/ring.pcapng" --ring-size 2KiB --watch --settle 1s --findings-log "$dir/ring.jsonl" >/dev/null 2>"$dir/ring.err" &
capture=$!
pids+=("$capture")
await 'capturing on' "$dir/ring.err"
python3 - "$url" <<'P'
import json, sys, urllib.request
def post(message, session=None):
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if session:
        headers["Mcp-Session-Id"] = session
    try:
        with urllib.request.urlopen(urllib.request.Request(sys.argv[1], json.dumps(message).encode(), headers), timeout=10) as r:
            r.read()
            return r.headers["Mcp-Session-Id"]
    except Exception as e:
        print(e)
session = post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "e2e", "version": "1"}}})
for n in range(1, 7):
    post({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": "t", "arguments": {}}}, session)
P
await '"finding"' "$dir/ring.jsonl"
kill -INT "$capture"
wait "$capture" || fail "the capture ended with status $?: $(cat "$dir/ring.err")"
[ "$(find "$dir" -name 'ring_0*' | wc -l)" -gt 2 ] || fail "the ring did not turn"
rules=$(python3 -c 'import json, sys; print([json.loads(l)["rule"] for l in open(sys.argv[1])])' "$dir/ring.jsonl")
case $rules in *orphaned/*) ;; *) fail "the dropped reply was not told: $rules" ;; esac
echo "ok: a call without a reply is told while a ring is captured: $rules"
