#!/usr/bin/env bash
# Live capture as root: on loopback, in network namespaces, behind nginx, under load, and killed. Needs
# crosswire and crosswire-capture (cargo build --features capture) in one folder; installs mcp 1.26.0
# into a folder of its own, and nginx from the distribution if it is missing. Where something cannot be
# had, says so and ends with status 77. Takes about a minute.
#
# usage: capture.sh [CROSSWIRE]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
crosswire=$(realpath "${1:-$here/../../target/debug/crosswire}")
dir=$(mktemp -d)
pids=()
spaces=()
stop() {
    for pid in "${pids[@]+"${pids[@]}"}"; do kill "$pid" 2>/dev/null || true; done
    for space in "${spaces[@]+"${spaces[@]}"}"; do ip netns del "$space" 2>/dev/null || true; done
    rm -rf "$dir"
}
trap stop EXIT
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*" >&2; [ ! -s "$dir/capture.log" ] || cat "$dir/capture.log" >&2; exit 1; }

[ "$(id -u)" = 0 ] || skip "not root"
[ -x "$(dirname "$crosswire")/crosswire-capture" ] || skip "crosswire-capture was not built (libpcap-dev is missing)"
"$crosswire" capture -i lo -w "$dir/try.pcapng" --for 100ms 2>"$dir/try.log" || skip "nothing can be captured here: $(tail -1 "$dir/try.log")"
command -v ip >/dev/null && ip netns add "crosswire-try-$$" 2>/dev/null || skip "no network namespaces"
ip netns del "crosswire-try-$$"
command -v python3 >/dev/null || skip "python3 is not installed"
command -v nginx >/dev/null || (apt-get update && apt-get install -y --no-install-recommends nginx-light) >/dev/null 2>&1 || skip "nginx cannot be installed"
python3 -m venv "$dir/venv" && timeout 120 "$dir/venv/bin/pip" -q --disable-pip-version-check install mcp==1.26.0 >"$dir/pip.log" 2>&1 ||
    skip "mcp 1.26.0 cannot be installed: $(tail -1 "$dir/pip.log")"
python="$dir/venv/bin/python"

# Starts the server at port 9311 and nginx before it at 9310 (in a namespace: put `ip netns exec …` first).
services() {
    "$@" "$python" "$here/python_server.py" 9311 >"$dir/server.log" 2>&1 &
    pids+=($!)
    mkdir -p "$dir/nginx"
    cat >"$dir/nginx/nginx.conf" <<N
daemon off; pid $dir/nginx/pid; error_log $dir/nginx/error.log;
events {}
http {
  access_log $dir/nginx/access.log;
  client_body_temp_path $dir/nginx/body; proxy_temp_path $dir/nginx/proxy; fastcgi_temp_path $dir/nginx/f; uwsgi_temp_path $dir/nginx/u; scgi_temp_path $dir/nginx/s;
  server { listen 9310; location / { proxy_pass http://127.0.0.1:9311; proxy_set_header Host 127.0.0.1:9311; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; } }
}
N
    "$@" nginx -p "$dir/nginx" -c "$dir/nginx/nginx.conf" &
    pids+=($!)
    for port in 9311 9310; do
        for i in $(seq 150); do
            "$@" python3 -c "import socket; socket.create_connection(('127.0.0.1', $port), 1)" 2>/dev/null && break
            [ "$i" != 150 ] || fail "nothing listens on $port"
            sleep 0.2
        done
    done
}
stop_services() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
    pids=()
}

# Captures with the given options while the calls run; sets `file`.
begin() {
    file=$1; shift
    : >"$dir/capture.log"
    "$@" -w "$file" 2>"$dir/capture.log" &
    capture=$!
    for _ in $(seq 100); do
        grep -q 'capturing on' "$dir/capture.log" && return
        sleep 0.1
    done
    fail "the capture did not start"
}
helper() { pgrep -P "$1" -f 'crosswire-capture capture' || true; }
end() {
    kill -INT "$capture"
    wait "$capture" || fail "the capture ended with status $?"
}

# Reports of analyze must satisfy a condition in Python over `report`, `rules`, `problems` and `calls`.
check() {
    local name=$1 condition=$2; shift 2
    "$crosswire" analyze "$@" --format json >"$dir/report.json" 2>"$dir/analyze.log" || [ $? = 1 ] || fail "$name: analyze: $(cat "$dir/analyze.log")"
    python3 - "$dir/report.json" "$condition" <<'P' || fail "$name: $condition"
import json, sys
report = json.load(open(sys.argv[1]))
rules = [f["rule"] for f in report["findings"]]
problems = {p["kind"]: p["count"] for i in report["inputs"] for p in i["problems"]}
calls = report["calls"]
if not eval(sys.argv[2]):
    print(rules, problems, [(c["id"], c["outcome"]) for c in calls], file=sys.stderr)
    sys.exit(1)
P
    echo "ok: $name"
}

collision='"crossed/id-collision" in rules and "orphaned/no-reply" in rules and not problems'

services
begin "$dir/lo.pcapng" "$crosswire" capture -i lo -f 'tcp port 9311'
"$python" "$here/collide.py" http://127.0.0.1:9310/mcp >"$dir/got.txt"
end
grep -q '^B.*heron' "$dir/got.txt" || fail "the server did not cross the calls: $(cat "$dir/got.txt")"
check "the collision behind nginx is found in a capture on loopback" "$collision" "$dir/lo.pcapng"
check "the server's side alone, by a filter" "$collision" "$dir/lo.pcapng" --filter 'tcp port 9311 and host 127.0.0.1'
check "nothing, by another filter" 'not calls and not rules' "$dir/lo.pcapng" --filter 'tcp port 9312'

# A ring loses nothing between its files.
begin "$dir/ring.pcapng" "$crosswire" capture -i lo -f 'tcp port 9311' --ring-size 4KiB
"$python" "$here/collide.py" http://127.0.0.1:9310/mcp >/dev/null
end
[ "$(find "$dir" -name 'ring_0*.pcapng' | wc -l)" -gt 3 ] || fail "the ring did not turn"
check "the collision is found in a ring of files" '"crossed/id-collision" in rules and not problems' "$dir"/ring_0*.pcapng

# With the helper stopped the kernel's buffer overflows: what is missing is said, and accuses nobody.
begin "$dir/drops.pcapng" "$crosswire" capture -i lo -B 256KiB
worker=$(helper "$capture")
"$python" "$here/collide.py" http://127.0.0.1:9310/mcp >/dev/null &
calls=$!
sleep 0.2
kill -STOP "$worker"
python3 -c "
import socket, threading
s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname()); r, _ = s.accept()
threading.Thread(target=lambda: [0 for _ in iter(lambda: r.recv(1 << 16), b'')]).start()
[c.sendall(bytes(1 << 16)) for _ in range(2000)]; c.close()"
sleep 4
kill -CONT "$worker"
wait "$calls"
end
grep -q '[1-9][0-9]* dropped by the kernel' "$dir/capture.log" || fail "no word of dropped packets"
check "dropped packets are told in the file, and nobody is accused over them" \
    'problems.get("dropped-packets", 0) > 0 and not [f for f in report["findings"] if f["rule"].startswith("orphaned/")]' "$dir/drops.pcapng"

# Killed at any moment the file can be read to its end.
for n in 1 2 3 4 5; do
    begin "$dir/killed-$n.pcapng" "$crosswire" capture -i lo
    worker=$(helper "$capture")
    "$python" "$here/collide.py" http://127.0.0.1:9310/mcp >/dev/null &
    calls=$!
    sleep "$(python3 -c "import random; print(0.5 + random.random())")"
    kill -9 "$worker"
    wait "$capture" && fail "a capture that was killed says that all is well"
    kill "$calls" 2>/dev/null || true
    wait "$calls" 2>/dev/null || true
    check "killed, the file is whole (try $n)" \
        'report["inputs"][0]["records"] > 0 and not {"truncated-record", "garbage"} & set(problems)' "$dir/killed-$n.pcapng"
done
stop_services

# Server and proxy in one network namespace, the client in another.
a=crosswire-a-$$ b=crosswire-b-$$
spaces=("$a" "$b")
ip netns add "$a" && ip netns add "$b"
ip link add "cwa$$" netns "$a" type veth peer name "cwb$$" netns "$b"
ip -n "$a" addr add 10.77.0.1/24 dev "cwa$$" && ip -n "$b" addr add 10.77.0.2/24 dev "cwb$$"
for pair in "$a cwa$$" "$a lo" "$b cwb$$" "$b lo"; do set -- $pair; ip -n "$1" link set "$2" up; done
services ip netns exec "$b"
begin "$dir/space.pcapng" ip netns exec "$b" "$crosswire" capture -i "cwb$$" -i lo -f 'tcp port 9310 or tcp port 9311'
ip netns exec "$a" "$python" "$here/collide.py" http://10.77.0.2:9310/mcp >"$dir/got.txt"
end
check "the collision is found in a capture of two interfaces in a network namespace" \
    '"crossed/id-collision" in rules and "proxy" in next(f for f in report["findings"] if f["rule"] == "crossed/id-collision")["cleared"]' "$dir/space.pcapng"
echo "all passed"
