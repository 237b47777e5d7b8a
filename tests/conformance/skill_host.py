"""A host of skills, as the suite's client scenarios want it: it verifies a skill before it uses it (SEP-2640)."""

import hashlib
import sys
from typing import Any

import httpx2
import yaml

from gateway.core.own_names import SKILL_TOOL
from tests.conformance.processes import PATIENCE, REVISION

EXTENSION = "io.modelcontextprotocol/skills"


def load_skills(url: str, *, reads: bool, with_tool: bool) -> None:
    """List the skills; if it `reads`, load each, and read its other files if nothing is wrong with it.

    `with_tool`: the same is done as a host that does not know skills, by the gateway's tool, which has to verify them.
    """
    for entry in ask(url, "skills/list", able=True)["skills"]:
        others = [file["uri"] for file in entry["resources"] if file["uri"] != entry["uri"]]
        if reads and is_sound(entry, ask(url, "resources/read", able=True, uri=entry["uri"])["contents"][0]["text"]):
            read_all(url, others)
    if not with_tool:
        return
    url += "/default"  # a profile whose hosts have the gateway's tools
    told = ask(url, "tools/call", name=SKILL_TOOL, arguments={})
    assert "pdf-processing" in told["content"][0]["text"], told
    if reads:
        told = ask(url, "tools/call", name=SKILL_TOOL, arguments={"name": "pdf-processing"})
        print(told, file=sys.stderr)
        if not told.get("isError"):
            read_all(url, others)


def read_all(url: str, uris: list[str]) -> None:
    for uri in uris:
        ask(url, "resources/read", able=True, uri=uri)


def is_sound(entry: dict[str, Any], text: str) -> bool:
    """Whether a `SKILL.md` has the size, the digest and the frontmatter of its entry."""
    (file,) = (file for file in entry["resources"] if file["uri"] == entry["uri"])
    digest = f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    front = yaml.safe_load(text.split("---\n")[1])
    return (file["size"], file["digest"], entry["frontmatter"]) == (len(text.encode()), digest, front)


def ask(url: str, method: str, *, able: bool = False, **params: Any) -> dict[str, Any]:
    """Ask as a host that knows skills (`able`) or does not; return the result."""
    capabilities: dict[str, Any] = {"extensions": {EXTENSION: {}}} if able else {}
    envelope = {
        "protocolVersion": REVISION,
        "clientCapabilities": capabilities,
        "clientInfo": {"name": "h", "version": "1"},
    }
    meta = {f"io.modelcontextprotocol/{key}": value for key, value in envelope.items()}
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": REVISION,
        "Mcp-Method": method,
        **({"Mcp-Name": name} if (name := params.get("name") or params.get("uri")) else {}),
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    answer = httpx2.post(url, json=message, headers=headers, timeout=PATIENCE, trust_env=False)
    return answer.json()["result"]
