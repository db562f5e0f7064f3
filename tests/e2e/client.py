"""A client of the official Python SDK against a played server: calls each tool once and says what
became of it, one line a call.

usage: client.py URL TOOL…
"""
import asyncio
import sys

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


async def one(session, tool):
    try:
        result = await asyncio.wait_for(session.call_tool(tool, {}), 2)
        return f"{tool}: {result.content[0].text}"
    except BaseException as e:
        return f"{tool}: {type(e).__name__}"


async def main():
    async with streamablehttp_client(sys.argv[1]) as (read, write, _):
        async with ClientSession(read, write) as session:
            await session.initialize()
            for line in await asyncio.gather(*(one(session, tool) for tool in sys.argv[2:])):
                print(line, flush=True)


asyncio.run(main())
