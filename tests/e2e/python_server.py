"""A server of the official Python SDK (1.x or 2.x) or of FastMCP whose tools give back what they are
given: the three that probing needs, and those of the recorded cases that are replayed.

usage: python_server.py PORT [stateless]
"""
import asyncio
import sys

from mcp.types import ToolAnnotations

port, stateless = int(sys.argv[1]), "stateless" in sys.argv
address = {"host": "127.0.0.1", "port": port, "stateless_http": stateless}
try:
    from fastmcp import FastMCP

    server = FastMCP("e2e")
    run = lambda: server.run(transport="http", show_banner=False, **address)
except ImportError:
    try:
        from mcp.server.fastmcp import FastMCP

        server = FastMCP("e2e", **address)
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


run()
