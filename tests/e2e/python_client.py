"""A client of the official Python SDK (1.x or 2.x): calls the tools at once and says what became of
each call, one line a call.

usage: python_client.py URL TOOL…
"""
import asyncio
import sys

from mcp import ClientSession

try:
    from mcp.client.streamable_http import streamable_http_client as connect
except ImportError:
    from mcp.client.streamable_http import streamablehttp_client as connect


async def one(session, tool, after):
    # In order on any machine, and still in flight at once.
    await asyncio.sleep(after)
    try:
        result = await asyncio.wait_for(session.call_tool(tool, {}), 2)
        text = result.content[0].text if result.content else "nothing"
        return f"{tool}: {text}"
    except (TimeoutError, asyncio.TimeoutError):
        return f"{tool}: timeout"
    except BaseException as e:
        return f"{tool}: error {type(e).__name__}"


async def main():
    async with connect(sys.argv[1]) as streams:
        async with ClientSession(streams[0], streams[1]) as session:
            await session.initialize()
            calls = [one(session, tool, 0.2 * n) for n, tool in enumerate(sys.argv[2:])]
            for line in await asyncio.gather(*calls):
                print(line, flush=True)
            # What it still has to say to the server.
            await asyncio.sleep(0.4)


asyncio.run(main())
