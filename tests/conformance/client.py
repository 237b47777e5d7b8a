"""The client of the conformance tests: what the suite's client scenarios ask of a client.

    MCP_CONFORMANCE_SCENARIO=<name> python -m tests.conformance.client [--through-gateway] <url of the suite's server>

With `--through-gateway` a gateway is started whose one upstream is the suite's server, and the same is asked of that:
what the suite then judges is the gateway's upstream side.
"""

import json
import os
import sys
from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.client.client import Client
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from tests.conformance.processes import gateway
from tests.conformance.skill_host import load_skills

PATIENCE = 50
"""Seconds; the suite ends the whole program after 60."""

SUM = ("add_numbers", {"a": 5, "b": 3})
CALLS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "tools_call": [SUM],
    "request-metadata": [SUM],
    "sse-retry": [("test_reconnection", {})],
    "elicitation-sep1034-client-defaults": [("test_client_elicitation_defaults", {})],
    "sep-2322-client-request-state": [
        (f"test_mrtr_{name}", {}) for name in ("echo_state", "unrelated", "no_state", "no_result_type")
    ],
}
"""The scenarios that say which tools are called; of the others, every tool is."""

VALUES = {"integer": 0, "number": 0, "boolean": False, "object": {}, "array": [], "null": None}


async def use(url: str, scenario: str, revision: str) -> None:
    """Ask for everything that the server offers, as a host of this revision."""
    mode = "auto" if revision in MODERN_PROTOCOL_VERSIONS else "legacy"
    able: Any = {"elicitation_callback": elicited, "sampling_callback": sampled, "list_roots_callback": rooted}
    async with Client(url, mode=mode, cache=None, **able) as client:
        tools = (await client.list_tools()).tools
        for name, arguments in calls(scenario, tools):
            await attempt(client.call_tool, name, arguments)
        if client.server_capabilities.resources is not None:
            for resource in (await client.list_resources()).resources:
                await attempt(client.read_resource, str(resource.uri))
        if client.server_capabilities.prompts is not None:
            for prompt in (await client.list_prompts()).prompts:
                await attempt(client.get_prompt, prompt.name, {a.name: "x" for a in prompt.arguments or []})


async def attempt(do: Any, *arguments: Any) -> None:
    """One request. What comes of it is the suite's to judge, and what it is answered is not always right."""
    try:
        await do(*arguments)
    except (MCPError, ValidationError, RuntimeError) as problem:
        print(f"{arguments[0]}: {type(problem).__name__}: {problem}", file=sys.stderr)


def calls(scenario: str, tools: Iterable[types.Tool]) -> Iterable[tuple[str, dict[str, Any]]]:
    """The tools to call, and with what."""
    listed = {tool.name: tool.input_schema for tool in tools}
    if scenario in CALLS:
        return CALLS[scenario]
    if asked := json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}")).get("toolCalls"):
        return [(call["name"], call.get("arguments") or {}) for call in asked if call["name"] in listed]
    if "json_schema_echo" in listed:
        return [("json_schema_echo", {"schema": listed["json_schema_2020_12_tool"]})]
    return [(name, smallest(schema)) for name, schema in listed.items()]


def smallest(schema: dict[str, Any]) -> dict[str, Any]:
    """The arguments without which a tool cannot be called."""
    kinds = {name: schema.get("properties", {}).get(name, {}).get("type") for name in schema.get("required", [])}
    return {name: VALUES.get(kind, "x") for name, kind in kinds.items()}


async def elicited(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    """The user accepts the form, with the defaults that stand in it."""
    properties = params.requested_schema.get("properties", {}) if params.mode == "form" else {}
    content = {name: field["default"] for name, field in properties.items() if "default" in field}
    return types.ElicitResult(action="accept", content=content)


async def sampled(context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    """The model says the same to everything."""
    answer = types.TextContent(type="text", text="Paris.")
    return types.CreateMessageResult(role="assistant", content=answer, model="simulated")


async def rooted(context: Any) -> types.ListRootsResult:
    """The user works nowhere."""
    return types.ListRootsResult(roots=[])


def main() -> None:
    """Read the command line and what the suite says in the environment."""
    *options, url = sys.argv[1:]
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    revision = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", MODERN_PROTOCOL_VERSIONS[-1])
    is_through = "--through-gateway" in options

    async def bounded(served: str) -> None:
        with anyio.fail_after(PATIENCE):
            await use(served, scenario, revision)

    with gateway(url) if is_through else nullcontext(url) as served:
        if scenario.startswith("sep-2640-"):
            load_skills(served, reads="prefetch" not in scenario, with_tool=is_through)
        else:
            anyio.run(bounded, served)


if __name__ == "__main__":
    main()
