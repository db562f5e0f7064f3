"""Two conversations on one session use id 7 at once: the slow one's reply goes to the fast one, or the
other way round. Prints what each caller got.

usage: collide.py URL
"""
import asyncio
import json
import sys

import httpx

HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


async def post(client, session, message, timeout=6):
    headers = {**HEADERS, **({"Mcp-Session-Id": session} if session else {})}
    try:
        async with client.stream("POST", sys.argv[1], headers=headers, json=message, timeout=timeout) as response:
            text = ""
            async for piece in response.aiter_text():
                text += piece
            return response, text
    except httpx.TimeoutException:
        return None, "timeout"


async def main():
    async with httpx.AsyncClient() as client:
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "e2e", "version": "1"}}
        response, _ = await post(client, None, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        session = response.headers["mcp-session-id"]
        await post(client, session, {"jsonrpc": "2.0", "method": "notifications/initialized"})

        async def call(delay, text, id=7):
            arguments = {"text": text, "delay": delay}
            params = {"name": "slow_echo", "arguments": arguments}
            message = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
            return (await post(client, session, message))[1]

        for n in range(3):
            await call(0, f"alone number {n}", id=n + 1)

        async def later():
            await asyncio.sleep(0.3)
            return await call(2.5, "the marmot of the second caller")

        for name, text in zip("AB", await asyncio.gather(call(1.0, "the heron of the first caller"), later())):
            print(name, json.dumps(text))


asyncio.run(main())
