"""A call as a test in Python, for the author of the server: does each host's model see what the tool returns?"""

import re
from collections.abc import Sequence
from pprint import pformat
from typing import Any

from gateway.config.mask_toml import secrets_in_words
from gateway.config.secrets import hide
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.fact_words import plain

_WIDTH = 110
MOST = 20_000
"""Characters of arguments that are written into a test."""
_WORD = re.compile(r"[a-z0-9]+")

_HEAD = '''"""Does every model see what {tool} returns? Made from a call in the console of mcp-gateway."""

import asyncio

import pytest
{imports}

from gateway.testing import assert_seen

TOOL = {name!r}
ARGUMENTS = {arguments}


async def call_tool() -> CallToolResult:
{opening}
        await session.initialize()
        return await session.call_tool(TOOL, ARGUMENTS)


@pytest.fixture(scope="module")
def result() -> CallToolResult:
    return asyncio.run(call_tool())


@pytest.mark.parametrize("host", {hosts!r})
def test_every_model_sees_what_{word}_returns(result: CallToolResult, host: str) -> None:
    assert_seen(result, host=host)


@pytest.mark.parametrize("host", {hosts!r})
def test_through_the_gateway_every_model_sees_what_{word}_returns(result: CallToolResult, host: str) -> None:
    assert_seen(result, host=host, through_gateway=True)
'''

_STDIO = """\
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import CallToolResult"""
_HTTP = """\
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult"""


def test_of_call(
    upstream: UpstreamSettings, tool: str, arguments: Any, hosts: Sequence[str], secrets: Sequence[str]
) -> str:
    """Return the source of the test: it starts or connects to the server itself, and calls its `tool`.

    `hosts` are those of `gateway.testing.HOSTS`. Variables of the environment and headers are left out, since they may
    be secrets, and so are `secrets`, and values of secret options of its command line. `arguments` are taken as they
    are; None: they are longer than `MOST` characters.
    """
    written = "" if arguments is None else pformat(arguments, width=_WIDTH, sort_dicts=False)
    if not 0 < len(written) <= MOST:
        written = "{}  # those of the call are too long to be written here"
    word = "_".join(_WORD.findall(tool.casefold()))[:60].strip("_") or "the_tool"
    return _HEAD.format(
        tool=_in_docstring(tool),
        imports=_HTTP if upstream.command is None else _STDIO,
        name=tool,
        arguments=written,
        opening=_opening(upstream, secrets),
        hosts=list(hosts),
        word=word,
    )


def _opening(upstream: UpstreamSettings, secrets: Sequence[str]) -> str:
    if upstream.command is None:
        address = hide((upstream.url or "").partition("?")[0], secrets)
        return (
            f"    async with streamable_http_client({address!r}) as streams, "
            "ClientSession(streams[0], streams[1]) as session:"
        )
    secrets = (*secrets, *secrets_in_words(upstream.args))
    values = [f"command={hide(upstream.command, secrets)!r}", f"args={[hide(one, secrets) for one in upstream.args]!r}"]
    if upstream.cwd is not None:
        values.append(f"cwd={str(upstream.cwd)!r}")
    lines = "".join(f"        {value},\n" for value in values)
    return (
        f"    server = StdioServerParameters(\n{lines}    )\n"
        "    async with stdio_client(server) as streams, ClientSession(*streams) as session:"
    )


def _in_docstring(name: str) -> str:
    return "".join(char if char.isalnum() or char in "-_./ " else "?" for char in plain(name, 100))
