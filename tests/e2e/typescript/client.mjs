// A client of the official TypeScript SDK: calls the tools at once and says what became of each call,
// one line a call. Works with 1.x (@modelcontextprotocol/sdk) and 2.x (@modelcontextprotocol/client).
//
// usage: node client.mjs URL TOOL…
const [url, ...tools] = process.argv.slice(2);

async function sdk() {
    try {
        const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
        return { Client, Transport: StreamableHTTPClientTransport, call: (c, p, o) => c.callTool(p, o) };
    } catch {
        const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
        const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
        return { Client, Transport: StreamableHTTPClientTransport, call: (c, p, o) => c.callTool(p, undefined, o) };
    }
}

const { Client, Transport, call } = await sdk();
const client = new Client({ name: 'e2e', version: '1.0.0' });
client.onerror = e => console.error(`onerror: ${e.message}`);
await client.connect(new Transport(new URL(url)));

async function one(name, after) {
    // In order on any machine, and still in flight at once.
    await new Promise(done => setTimeout(done, after));
    try {
        const result = await call(client, { name, arguments: {} }, { timeout: 2000 });
        return `${name}: ${result.content[0]?.text ?? 'nothing'}`;
    } catch (e) {
        const timeout = e.code === -32001 || e.code === 'REQUEST_TIMEOUT' || /timed? ?out/i.test(e.message);
        return timeout ? `${name}: timeout` : `${name}: error ${e.constructor.name}`;
    }
}

const calls = tools.map((name, n) => one(name, 200 * n));
for (const line of await Promise.all(calls)) console.log(line);
// What it still has to say to the server.
await new Promise(done => setTimeout(done, 400));
process.exit(0);
