"""Uses "runvault mcp" with the client of the official Python SDK: PROGRAM VAULT."""

import os
import sqlite3
import sys

import anyio
from mcp import ClientSession, MCPError, StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client

PROGRAM, VAULT = sys.argv[1:]
SESSION, RUN = "4df877dec7f4", "3941d389b337"
LIMIT = 24_000


def server(*options: str) -> StdioServerParameters:
    arguments = ["mcp", "--vault", VAULT, *options]
    return StdioServerParameters(command=PROGRAM, args=arguments, env={"RUNVAULT_CONFIG": os.environ["RUNVAULT_CONFIG"]})


async def call(session, tool: str, **arguments) -> dict:
    result = await session.call_tool(tool, arguments)
    assert not result.is_error, (tool, result)
    assert len(result.model_dump_json(by_alias=True, exclude_none=True).encode()) <= LIMIT
    return result.structured_content


async def use_everything(session) -> None:
    tools = await session.list_tools()
    assert len(tools.tools) == 7 and all(tool.annotations.read_only_hint for tool in tools.tools), tools
    sessions = await call(session, "find_runs", kind="session")
    contracts = await call(session, "find_runs", kind="contract")
    contract = contracts["rows"][0]["core_hash"]
    other = next(run["core_hash"] for run in sessions["rows"] if SESSION not in run["core_hash"])
    outline = await call(session, "read_run", artifact=RUN)
    assert len(outline["outline"]) == outline["total"]
    step = await call(session, "read_run", artifact=SESSION, step=1)
    assert any(text["text"] == "bug" for text in step["texts"] if text["role"] == "response"), step
    assert (await call(session, "search", words="export CSV"))["passages"]
    prompt = "Summarise ticket 4711 in one sentence."
    assert len((await call(session, "who_saw_prompt", prompt=prompt))["artifacts"]) > 2
    assert (await call(session, "compare_runs", one=SESSION, other=other))["different"]
    assert (await call(session, "links", artifact=RUN))["links"]
    audited = await call(session, "audit_contract", contract=contract)
    assert "clean" in audited["results"][0] and "verdict" in audited["results"][1], audited

    resources = await session.list_resources()
    templates = await session.list_resource_templates()
    assert resources.resources and len(templates.resource_templates) == 2
    uri = next(resource.uri for resource in resources.resources if SESSION in str(resource.uri))
    contents = (await session.read_resource(str(uri))).contents[0]
    with open(os.path.join(os.path.dirname(__file__), "../../examples/session.json"), encoding="utf-8") as file:
        assert contents.text == file.read()

    refused = await session.call_tool("read_run", {"artifact": "ffffffffffff"})
    assert refused.is_error and "nothing in the vault" in refused.content[0].text, refused
    refused = await session.call_tool("annotate", {"artifact": RUN, "note": "n"})
    assert refused.is_error and "read only" in refused.content[0].text, refused
    for wrong in (session.call_tool("no_tool", {}), session.read_resource("runvault://artifact/ffffffffffff")):
        try:
            await wrong
        except MCPError:
            continue
        raise AssertionError("there should be an error")


async def cancel(session) -> None:
    """Cancels requests while another process holds the write lock."""
    lock = sqlite3.connect(VAULT, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    ended = []

    async def note(number: int, scope: anyio.CancelScope) -> None:
        with scope:
            ended.append((number, await call(session, "annotate", artifact=RUN, note=f"note {number}")))

    async with anyio.create_task_group() as tasks:
        scopes = [anyio.CancelScope() for _ in range(5)]
        for number, scope in enumerate(scopes):
            tasks.start_soon(note, number, scope)
            # Each request is sent before the next one.
            await anyio.wait_all_tasks_blocked()
        scopes[4].cancel()
        await anyio.wait_all_tasks_blocked()
        # The others are answered by the thread that reads messages.
        await session.list_tools()
        lock.execute("ROLLBACK")
        lock.close()
    assert sorted(number for number, _ in ended) == [0, 1, 2, 3], ended
    await call(session, "find_runs")


async def main() -> None:
    async with stdio_client(server()) as (read, write), ClientSession(read, write) as session:
        started = await session.initialize()
        assert started.server_info.name == "runvault", started
        print("initialized with", started.protocol_version)
        await use_everything(session)
    # The other way to begin: without a handshake.
    async with Client(server()) as client:
        await use_everything(client)
    async with stdio_client(server("--allow-write")) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        await cancel(session)
    print("all answered")


anyio.run(main)
