"""A server with one tool over HTTP+SSE, the transport before streamable HTTP. It listens at a free port of the loopback interface,
and prints it.
"""

import socket

import uvicorn
from mcp.server import MCPServer

server = MCPServer("weather", log_level="ERROR")


@server.tool()
def get_weather(city: str) -> str:
    """Tells the weather"""
    return f"clear in {city}"


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(server.sse_app(), log_level="error")).run(sockets=[listener])
