"""A server of the official Python SDK (1.x or 2.x) or of FastMCP whose tools give back what they are
given: the three that probing needs, and those of the recorded cases that are replayed.

usage: python_server.py PORT [stateless] [json] [resumable]

`json`: replies are no event streams; `resumable` (official SDK 1.24 or newer): events can be asked for again, and the
tool `polled` ends its stream before its reply.
"""
import asyncio
import sys

from mcp.types import ToolAnnotations

port, stateless = int(sys.argv[1]), "stateless" in sys.argv
address = {"host": "127.0.0.1", "port": port, "stateless_http": stateless}
if "json" in sys.argv:
    address["json_response"] = True
resumable = "resumable" in sys.argv


def event_store():
    from mcp.server.streamable_http import EventMessage, EventStore

    class Kept(EventStore):
        def __init__(self):
            self.events = []

        async def store_event(self, stream_id, message):
            self.events.append((stream_id, message))
            return str(len(self.events))

        async def replay_events_after(self, last_event_id, send_callback):
            last = int(last_event_id)
            stream = self.events[last - 1][0]
            for number, (of, message) in enumerate(self.events[last:], last + 1):
                if of == stream and message is not None:
                    await send_callback(EventMessage(message, str(number)))
            return stream

    return Kept()


try:
    from fastmcp import FastMCP

    server = FastMCP("e2e")
    run = lambda: server.run(transport="http", show_banner=False, **address)
except ImportError:
    try:
        from mcp.server.fastmcp import FastMCP

        more = {"event_store": event_store(), "retry_interval": 200} if resumable else {}
        server = FastMCP("e2e", **address, **more)
        run = lambda: server.run("streamable-http")
    except ImportError:  # 2.x
        from mcp.server.mcpserver import MCPServer

        server = MCPServer("e2e")
        run = lambda: server.run("streamable-http", **address)

read_only = server.tool(annotations=ToolAnnotations.model_validate({"readOnlyHint": True}))


@read_only
async def echo(text: str) -> str:
    return text


@read_only
async def slow_echo(text: str = "", tag: str = "", delay: float = 0.0, seconds: float = 0.0) -> str:
    await asyncio.sleep(delay + seconds)
    return text or tag


@server.tool()
async def write(text: str) -> str:
    return text


@read_only
async def fast_echo(tag: str) -> str:
    return tag


@read_only
async def memory_read(key: str) -> str:
    return f"what is known of {key}"


@read_only
async def search_waypoints(query: str, limit: int) -> str:
    return f"{limit} waypoints for {query}"


@server.tool()
async def journal_append(text: str, conversation_id: str, delay: float) -> str:
    await asyncio.sleep(delay)
    return f"{conversation_id} wrote: {text}"


@server.tool()
async def entity_update(id: str, field: str, value: str, delay: float) -> str:
    await asyncio.sleep(delay)
    return f"{field} of {id} is {value}"


if resumable:
    from mcp.server.fastmcp import Context

    @read_only
    async def polled(ctx: Context) -> str:
        await ctx.close_sse_stream()
        await asyncio.sleep(0.6)
        return "after the stream ended"


run()
