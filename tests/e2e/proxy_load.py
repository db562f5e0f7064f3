"""The proxy under load, on loopback, with nothing but Python's own library.

500 event streams at once through the proxy must carry the same bytes as without it, and 2,000 open
streams must fit into 256 MiB. With --latency also: what the proxy adds to a call at the 99th percentile.

usage: proxy_load.py CROSSWIRE [--tls] [--latency]
"""
import asyncio
import hashlib
import os
import random
import resource
import ssl
import subprocess
import sys
import tempfile
import time

STREAMS, OPEN, MIB = 500, 2000, 256
here = os.path.dirname(os.path.abspath(__file__))
pem = lambda name: os.path.join(here, "..", "..", "fixtures", "tls", name)
tls = "--tls" in sys.argv
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def events(n):
    """The events of stream n, always the same: lengths from a few bytes to 40 KiB."""
    r = random.Random(n)
    for i in range(20):
        size = r.choice([3, 80, 900, 5000, 40000])
        yield b"id: %d/%d\ndata: %s\n\n" % (n, i, bytes(r.choices(b"abcdefghij", k=size)))


async def server(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            n = int(head.split(b" ")[1].split(b"=")[1])
            if n < 0:
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
                continue
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            if n >= 100000:
                while True:
                    writer.write(b"9\r\n: ping %d\n\r\n" % (n % 10))
                    await writer.drain()
                    await asyncio.sleep(5)
            for i, event in enumerate(events(n)):
                writer.write(b"%x\r\n%s\r\n" % (len(event), event))
                await writer.drain()
                if i % 5 == 0:
                    await asyncio.sleep(0.01)
            writer.write(b"0\r\n\r\n")
            await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
        pass
    finally:
        writer.close()


async def connect(port, secure):
    context = ssl.create_default_context(cafile=pem("ca.crt")) if secure else None
    name = "localhost" if secure else None
    return await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name)


async def stream(port, secure, n):
    """Head and body of a stream, the chunks put together."""
    reader, writer = await connect(port, secure)
    writer.write(b"GET /mcp?n=%d HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n" % n)
    head = await reader.readuntil(b"\r\n\r\n")
    body = hashlib.sha256()
    while length := int(await reader.readline(), 16):
        body.update(await reader.readexactly(length))
        await reader.readexactly(2)
    writer.close()
    return head, body.hexdigest()


async def open_stream(port, secure, n):
    reader, writer = await connect(port, secure)
    writer.write(b"GET /mcp?n=%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % (100000 + n))
    await reader.readuntil(b": ping")
    return reader, writer


def memory_mib(pid):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024


async def latency(port, secure, count):
    reader, writer = await connect(port, secure)
    times = []
    for _ in range(count):
        start = time.perf_counter()
        writer.write(b"GET /mcp?n=-1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n{}")
        times.append(time.perf_counter() - start)
    writer.close()
    times.sort()
    return [times[int(count * q)] * 1000 for q in (0.5, 0.99)]


async def main():
    context = None
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem("leaf.crt"), pem("leaf.key"))
    upstream = await asyncio.start_server(server, "127.0.0.1", 0, ssl=context, backlog=4096)
    direct = upstream.sockets[0].getsockname()[1]
    folder = tempfile.TemporaryDirectory()
    file = os.path.join(folder.name, "proxy.pcapng")
    command = [sys.argv[1], "proxy", "--listen", "127.0.0.1:0", "-w", file, "--upstream"]
    command += [f"{'https' if tls else 'http'}://localhost:{direct}"]
    if tls:
        command += ["--ca", pem("ca.crt"), "--cert", pem("leaf.crt"), "--key", pem("leaf.key")]
    proxy = await asyncio.create_subprocess_exec(*command, stderr=subprocess.PIPE)
    line = (await proxy.stderr.readline()).decode()
    port = int(line.strip().rsplit(":", 1)[1])
    try:
        expected = await asyncio.gather(*(stream(direct, tls, n) for n in range(STREAMS)))
        got = await asyncio.gather(*(stream(port, tls, n) for n in range(STREAMS)))
        different = [n for n in range(STREAMS) if got[n] != expected[n]]
        assert not different, f"streams that differ: {different[:10]}"
        print(f"ok: {STREAMS} event streams at once are the same byte for byte")
        if "--latency" in sys.argv:
            plain, through = await latency(direct, tls, 3000), await latency(port, tls, 3000)
            print("latency of a call, ms (median, 99th percentile):", *(f"{t:.3f}" for t in plain + through))
        idle = memory_mib(proxy.pid)
        held = []
        for n in range(0, OPEN, 100):
            held += await asyncio.gather(*(open_stream(port, tls, n + i) for i in range(100)))
        used = memory_mib(proxy.pid)
        assert used < MIB, f"{OPEN} open streams took {used:.0f} MiB"
        print(f"ok: {OPEN} open streams in {used:.0f} MiB ({idle:.0f} MiB before)")
        for _, writer in held:
            writer.close()
    finally:
        proxy.send_signal(2)
        said = (await proxy.stderr.read()).decode()
    status = await proxy.wait()
    assert status == 0, (status, said)
    print("ok:", said.strip().replace("\n", "; "))


asyncio.run(main())
