"""A host as small as can be: one MCP server over stdio, one model over Chat Completions, from the standard library.

With `BLIND` in its environment it shows no pictures. With `DIES_AT`, it ends when the model calls this tool.
"""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any


class Server:
    """The MCP server of the host's configuration."""

    def __init__(self, command: str) -> None:
        self._process = subprocess.Popen([command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "fake", "version": "1"}}
        self.ask("initialize", client)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        self._send({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if "id" in (message := json.loads(line)):
                return message["result"]
        raise SystemExit("the server ended")

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        print(json.dumps(message), file=self._process.stdin, flush=True)


def main(prompt: str) -> None:
    server = Server(json.loads((Path.home() / "servers.json").read_text())["command"])
    names = [tool["name"] for tool in server.ask("tools/list", {})["tools"]]
    tools = [{"type": "function", "function": {"name": f"mcp__cases__{name}", "parameters": {}}} for name in names]
    messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
    while True:
        reply = complete({"model": os.environ["MODEL"], "messages": messages, "tools": tools})
        messages.append(reply)
        if not reply.get("tool_calls"):
            return
        shown: list[dict[str, Any]] = []
        for call in reply["tool_calls"]:
            name = call["function"]["name"].removeprefix("mcp__cases__")
            if name == os.environ.get("DIES_AT"):
                raise SystemExit(f"{name} is too much")
            words, pictures = as_parts(server.ask("tools/call", {"name": name, "arguments": {}}))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": words or "(nothing)"})
            shown += pictures
        if shown and not os.environ.get("BLIND"):
            messages.append({"role": "user", "content": shown})


def complete(request: dict[str, Any]) -> dict[str, Any]:
    """The model's reply."""
    head = {"content-type": "application/json"}
    asked = urllib.request.Request(os.environ["MODEL_URL"], json.dumps(request).encode(), head)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(asked) as response:
        return json.load(response)["choices"][0]["message"]


def as_parts(result: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    """The texts of a result, and its pictures as parts of a user's message."""
    words = [block["text"] for block in result["content"] if block["type"] == "text"]
    pictures = [
        {"type": "image_url", "image_url": {"url": f"data:{block['mimeType']};base64,{block['data']}"}}
        for block in result["content"]
        if block["type"] == "image"
    ]
    return "\n".join(words), pictures


if __name__ == "__main__":
    main(sys.argv[1])
