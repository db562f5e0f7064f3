"""A server of the official Python SDK with tools that give back what they are given.

usage: server.py PORT [stateless]
"""
import asyncio
import sys

try:
    from mcp.server.fastmcp import FastMCP as Server
except ImportError:  # 2.x
    from mcp.server.mcpserver import MCPServer as Server
from mcp.types import ToolAnnotations

port, stateless = int(sys.argv[1]), "stateless" in sys.argv
read_only = ToolAnnotations.model_validate({"readOnlyHint": True})
options = {"host": "127.0.0.1", "port": port, "stateless_http": stateless}
is_old = Server.__name__ == "FastMCP"
server = Server("e2e", **(options if is_old else {}))


@server.tool(annotations=read_only)
async def echo(text: str) -> str:
    return text


@server.tool(annotations=read_only)
async def slow_echo(text: str, delay: float = 0.0) -> str:
    await asyncio.sleep(delay)
    return text


@server.tool()
async def write(text: str) -> str:
    return text


server.run("streamable-http", **({} if is_old else options))
