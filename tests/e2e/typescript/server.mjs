// A server of the official TypeScript SDK whose tools give back what they are given. Works with 1.x
// (@modelcontextprotocol/sdk) and 2.x (@modelcontextprotocol/server and /node), whichever is there.
//
// usage: node server.mjs PORT [stateless|json|resumable]
//
// `json`: replies are no event streams; `resumable`: events can be asked for again, and the tool `polled` ends its
// stream before its reply.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { z } from 'zod';

const [port, mode] = process.argv.slice(2);

async function sdk() {
    try {
        const { McpServer } = await import('@modelcontextprotocol/server');
        const { NodeStreamableHTTPServerTransport } = await import('@modelcontextprotocol/node');
        return { McpServer, Transport: NodeStreamableHTTPServerTransport, schema: shape => z.object(shape) };
    } catch {
        const { McpServer } = await import('@modelcontextprotocol/sdk/server/mcp.js');
        const { StreamableHTTPServerTransport } = await import('@modelcontextprotocol/sdk/server/streamableHttp.js');
        return { McpServer, Transport: StreamableHTTPServerTransport, schema: shape => shape };
    }
}

const { McpServer, Transport, schema } = await sdk();
const said = text => ({ content: [{ type: 'text', text }] });

function echoing() {
    const server = new McpServer({ name: 'e2e', version: '1.0.0' });
    const annotations = { readOnlyHint: true };
    const text = z.string();
    server.registerTool('echo', { inputSchema: schema({ text }), annotations }, async ({ text }) => said(text));
    const slow = schema({ text, delay: z.number().default(0) });
    server.registerTool('slow_echo', { inputSchema: slow, annotations }, async ({ text, delay }) => {
        await new Promise(done => setTimeout(done, delay * 1000));
        return said(text);
    });
    if (mode === 'resumable') {
        server.registerTool('polled', { inputSchema: schema({}), annotations }, async (_, extra) => {
            (extra.closeSSEStream ?? extra.http?.closeSSE)?.();
            await new Promise(done => setTimeout(done, 600));
            return said('after the stream ended');
        });
    }
    server.registerTool('write', { inputSchema: schema({ text }) }, async ({ text }) => said(text));
    return server;
}

async function body(request) {
    const parts = [];
    for await (const part of request) parts.push(part);
    return parts.length ? JSON.parse(Buffer.concat(parts).toString()) : undefined;
}

const transports = new Map();

// Events by number, for those who ask for them again.
class Kept {
    events = [];
    async storeEvent(stream, message) {
        this.events.push([stream, message]);
        return String(this.events.length);
    }
    async replayEventsAfter(last, { send }) {
        const stream = this.events[Number(last) - 1]?.[0];
        for (const [i, [of, message]] of this.events.entries()) {
            if (i >= Number(last) && of === stream && Object.keys(message).length) await send(String(i + 1), message);
        }
        return stream;
    }
}
const more =
    mode === 'json' ? { enableJsonResponse: true } : mode === 'resumable' ? { eventStore: new Kept(), retryInterval: 200 } : {};

async function transport(request, message) {
    if (mode === 'stateless') {
        const fresh = new Transport({ sessionIdGenerator: undefined });
        await echoing().connect(fresh);
        return fresh;
    }
    const id = request.headers['mcp-session-id'];
    if (id !== undefined || message?.method !== 'initialize') return transports.get(id);
    const fresh = new Transport({
        ...more,
        sessionIdGenerator: () => randomUUID(),
        onsessioninitialized: id => void transports.set(id, fresh),
    });
    await echoing().connect(fresh);
    return fresh;
}

createServer(async (request, response) => {
    const message = request.method === 'POST' ? await body(request) : undefined;
    const found = await transport(request, message);
    if (!found) return response.writeHead(404).end();
    await found.handleRequest(request, response, message);
}).listen(Number(port), '127.0.0.1');
