"""A live capture of a real nginx: TLS 1.2 and 1.3 with every suite that it offers, HTTP/1.1 and HTTP/2, and
its clear back side. What is decrypted must be what was sent and received, byte for byte.

Needs tcpdump and the right to capture. Programs that are not installed are unpacked below target/e2e.
"""
import hashlib
import json
import os
import shutil
import subprocess
import time

from kit import CACHE, WORK, Missing, check, crosswire, free_port, run_quietly, serving, skip, wait_for

TLS13 = [
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_CCM_SHA256",
    "TLS_AES_128_CCM_8_SHA256",
]
HTTP = ("1.1", "2")
# More than a TLS record, and than an HTTP/2 window without an update.
LONG = 100_000


def tool(name, *packages):
    """The program's command line and environment, from a Debian package if need be."""
    if shutil.which(name):
        return shutil.which(name), dict(os.environ)
    home = CACHE / "deb" / name
    found = home / "usr/sbin" / name if (home / "usr/sbin" / name).exists() else home / "usr/bin" / name
    if not found.exists():
        if not shutil.which("apt-get") or not shutil.which("dpkg"):
            raise Missing(f"{name} is not installed")
        home.mkdir(parents=True, exist_ok=True)
        run_quietly(["apt-get", "-q", "download", *packages], cwd=home)
        for package in home.glob("*.deb"):
            run_quietly(["dpkg", "-x", str(package), str(home)])
        found = home / "usr/sbin" / name if (home / "usr/sbin" / name).exists() else home / "usr/bin" / name
    library = ":".join(map(str, home.glob("usr/lib/*")))
    return str(found), {**os.environ, "LD_LIBRARY_PATH": library}


def suites():
    """The suites of TLS 1.2 that OpenSSL, and so nginx, offers by itself, but for pre-shared keys."""
    listed = run_quietly(["openssl", "ciphers", "-s", "-tls1_2", "DEFAULT:!PSK:!SRP"]).strip().split(":")
    return [name for name in listed if not name.startswith("TLS_")]


def certificate(kind, options):
    paths = [str(WORK / f"{kind}.{end}") for end in ("key", "crt")]
    request = ["openssl", "req", "-x509", "-nodes", "-newkey", *options, "-keyout", paths[0], "-out", paths[1]]
    run_quietly([*request, "-subj", "/CN=localhost", "-days", "2"])
    return paths


def configuration(front, back):
    rsa = certificate("rsa", ["rsa:2048"])
    ecdsa = certificate("ecdsa", ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"])
    run_quietly(["openssl", "dhparam", "-dsaparam", "-out", str(WORK / "dh.pem"), "2048"])
    return f"""
    daemon off; pid {WORK}/nginx.pid; error_log {WORK}/nginx.log; worker_processes 1; {"user root;" if os.geteuid() == 0 else ""}
    events {{ }}
    http {{
        log_format suites "$server_protocol $ssl_protocol $ssl_cipher";
        access_log {WORK}/suites.log suites;
        client_body_temp_path {WORK}/body; proxy_temp_path {WORK}/proxy; fastcgi_temp_path {WORK}/f;
        uwsgi_temp_path {WORK}/u; scgi_temp_path {WORK}/s;
        server {{
            listen 127.0.0.1:{front} ssl http2;
            ssl_certificate {rsa[1]}; ssl_certificate_key {rsa[0]};
            ssl_certificate {ecdsa[1]}; ssl_certificate_key {ecdsa[0]};
            ssl_dhparam {WORK}/dh.pem; ssl_protocols TLSv1.2 TLSv1.3;
            ssl_ciphers "{":".join(suites())}"; ssl_conf_command Ciphersuites {":".join(TLS13)};
            location / {{ proxy_pass http://127.0.0.1:{back}; proxy_http_version 1.1; proxy_set_header Connection ""; }}
        }}
    }}
    """


def ask(front, suite, http, bodies):
    """Sends these bodies over one connection; gives the reply messages."""
    version = ["--tls13-ciphers", suite] if suite in TLS13 else ["--tls-max", "1.2", "--ciphers", suite]
    argv = ["curl", "-sS", "-k", "--max-time", "60"]
    files = []
    for n, body in enumerate(bodies):
        sent, got = WORK / f"sent-{n}", WORK / f"got-{n}"
        sent.write_bytes(body)
        got.unlink(missing_ok=True)
        files.append(got)
        headers = ["-H", "Content-Type: application/json", "-H", "Accept: application/json, text/event-stream"]
        one = ["--http2" if http == "2" else "--http1.1", *version, *headers, "--data-binary", f"@{sent}", "-o", str(got)]
        argv += (["--next", "-sS", "-k", "--max-time", "60"] if n else []) + one + [f"https://127.0.0.1:{front}/mcp"]
    run_quietly(argv, env={**os.environ, "SSLKEYLOGFILE": str(WORK / "keys.log")})
    data = [line[6:] for got in files for line in got.read_bytes().splitlines() if line.startswith(b"data: {")]
    return data


def call(number, tag, length=0):
    arguments = {"text": tag + "." * length}
    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "echo", "arguments": arguments}}
    return json.dumps(message).encode()


def digest(data):
    return hashlib.sha256(data).hexdigest()


def record(kind, nginx, tcpdump):
    """Runs all of it; gives what was sent and received as pairs of hashes, with a name each."""
    front = free_port()
    exchanged = {}
    with serving(kind, "stateless") as url:
        back = int(url.split(":")[2].split("/")[0])
        (WORK / "nginx.conf").write_text(configuration(front, back))
        program, env = nginx
        proxy = subprocess.Popen([program, "-p", str(WORK), "-c", str(WORK / "nginx.conf")], env=env)
        program, env = tcpdump
        ports = f"tcp port {front} or tcp port {back}"
        argv = [program, "-i", "lo", "-U", "-s", "0", "-B", "32768", "-w", str(WORK / "live.pcap"), ports]
        capture = subprocess.Popen(argv, env=env, stderr=subprocess.PIPE, text=True)
        try:
            wait_for(front, proxy)
            line = capture.stderr.readline()
            if "listening" not in line and "listening" not in capture.stderr.readline():
                raise Missing(f"tcpdump cannot capture: {line.strip()}")
            for suite in TLS13 + suites():
                for http in HTTP:
                    name = f"{suite}-over-{http}"
                    bodies = [call(len(exchanged) + n, f"{name}-{n}", LONG if n == 2 else 0) for n in range(3)]
                    replies = ask(front, suite, http, bodies)
                    if len(replies) != len(bodies):
                        raise RuntimeError(f"{name}: {len(replies)} replies")
                    for n, pair in enumerate(zip(bodies, replies)):
                        exchanged[f"{name}-{n}"] = tuple(map(digest, pair))
            time.sleep(1)
        finally:
            capture.terminate()
            _, said = capture.communicate()
            proxy.terminate()
            proxy.wait()
    return exchanged, said


def run(kind):
    try:
        nginx = tool("nginx", "nginx")
        tcpdump = tool("tcpdump", "tcpdump", "libpcap0.8")
        for needed in ("openssl", "curl"):
            if not shutil.which(needed):
                raise Missing(f"{needed} is not installed")
        exchanged, said = record(kind, nginx, tcpdump)
    except Missing as e:
        skip(f"TLS at a real nginx: {e}")
        return
    lines = (WORK / "suites.log").read_text().split("\n")
    met = {tuple(line.split()) for line in lines if line}
    versions = {protocol for _, protocol, _ in met}
    both = {http: len({s for h, _, s in met if h == f"HTTP/{http}"}) for http in ("1.1", "2.0")}
    wanted = len(TLS13) + len(suites())
    check(f"nginx spoke {sorted(versions)}, {both} suites", all(n == wanted for n in both.values()), str(sorted(met)))
    status, out, err = crosswire("analyze", WORK / "live.pcap", "--keylog", WORK / "keys.log", "--format", "json")
    report = json.loads(out)
    problems = [p for i in report["inputs"] for p in i["problems"]]
    check("the live capture is read whole and accuses nobody", status == 0 and not problems, f"{problems} {said} {err}")
    seen = {}
    for c in report["calls"]:
        hashes = {(s["request_sha256"], s["reply_sha256"]) for s in c["sightings"]}
        if len(c["sightings"]) == 2 and len(hashes) == 1:
            seen[hashes.pop()] = c["key"]
    missing = [name for name, pair in exchanged.items() if pair not in seen]
    details = f"{missing} {json.dumps(report['calls'][:3])}"
    check(f"{len(exchanged)} calls: front and back of nginx hold what was sent and received", not missing, details)
    status, out, err = crosswire("analyze", WORK / "live.pcap", "--format", "text")
    check("without keys it says so", "no keys" in out.splitlines()[0], out[:300])
