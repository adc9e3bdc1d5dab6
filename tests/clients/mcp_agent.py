"""Calls tools of the servers in a configuration, and asks a model about the results: CONFIG PROMPT [WORDS]."""

import json
import sys
import urllib.request

import anyio
from mcp import ClientSession, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client

CONFIG, PROMPT, *WORDS = sys.argv[1:]


def server() -> StdioServerParameters:
    with open(CONFIG, encoding="utf-8") as file:
        described = json.load(file)["mcpServers"]["notes"]
    return StdioServerParameters(command=described["command"], args=described["args"], env=described.get("env"))


def ask(text: str) -> str:
    import os

    base = os.environ.get("OPENAI_BASE_URL")
    if not base or "ask" not in WORDS:
        return "nobody was asked"
    body = {"model": "m", "messages": [{"role": "user", "content": f"{PROMPT}: {text}"}]}
    request = urllib.request.Request(
        f"{base}/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]


async def main() -> None:
    async with stdio_client(server()) as (read, write), ClientSession(read, write) as session:
        started = await session.initialize()
        print("server", started.server_info.name)
        tools = await session.list_tools()
        print("tools", len(tools.tools))
        try:
            result = await session.call_tool("find_runs", {"limit": 1})
            print("error" if result.is_error else "found", result.content[0].text[:200])
            refused = await session.call_tool("read_run", {"artifact": PROMPT})
            print("refused", refused.is_error, refused.content[0].text[:200])
        except MCPError as error:
            print("failed", error)
        print(ask(PROMPT))


anyio.run(main)
