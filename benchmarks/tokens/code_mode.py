"""The tokens of a script that takes twenty screenshots and shows two, and of twenty calls without a script, per host.

Server and script are those of `examples/screenshots`; a real gateway shapes the results for each host.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gateway.config.code_mode_settings import CodeModeSettings
from gateway.config.schema import Settings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.core.model.json_size import size_of
from gateway.core.model.revisions import NEWEST_HANDSHAKE
from gateway.core.tokens import list_tokens, text_tokens
from gateway.routing import Router
from gateway.routing.token_counts import TokenCounts
from gateway.runtime import open_gateway

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "examples" / "screenshots" / "compare_pages.py"
HOSTS = ("claude-code", "claude-desktop", "cursor", "vscode-copilot", "codex", "gemini-cli", "goose", "default")
MOST = 0.25


class Figures(NamedTuple):
    """The tokens for one host: of twenty calls and their results, of the script and its result, of its declaration."""

    title: str
    calls: int
    script: int
    declared: int
    pictures: tuple[int, int]
    """Pictures that the model sees: of the calls, and of the script."""


async def _figures(router: Router, host: str) -> Figures:
    """Return the figures for a host."""
    caller = Caller(revision=NEWEST_HANDSHAKE, profile=host, principal=host)
    profile = router.profile_of(caller)
    counts = TokenCounts(None)

    async def answer(name: str, arguments: Mapping[str, Any]) -> tuple[int, int]:
        """Call a tool; return the tokens of arguments and result, and the number of its pictures."""
        result = await router.respond("tools/call", {"name": name, "arguments": arguments}, caller)
        assert not result.get("isError"), result["content"]
        count, _ = await counts.count(result, size_of(result), profile, None, {})
        pictures = sum(block["type"] == "image" for block in result["content"])
        return text_tokens(str(arguments)) + count.total, pictures

    pages = [{"site": site, "page": page} for site in ("old", "new") for page in range(1, 11)]
    calls = [await answer("browser__screenshot", page) for page in pages]
    script = await answer("gateway_run", {"code": SCRIPT.read_text("utf-8")})
    tools = (await router.respond("tools/list", {}, caller))["tools"]
    declared = list_tokens(tool for tool in tools if tool["name"] == "gateway_run")
    pictures = sum(pictures for _, pictures in calls), script[1]
    return Figures(profile.title or host, sum(tokens for tokens, _ in calls), script[0], declared, pictures)


async def measure(hosts: Sequence[str] = HOSTS) -> list[Figures]:
    """Return the figures for these hosts."""
    upstream = UpstreamSettings(command=sys.executable, args=("-m", "examples.screenshots"), cwd=ROOT)
    settings = Settings(upstreams={"browser": upstream}, code_mode=CodeModeSettings(enabled=True))
    async with open_gateway(settings) as router:
        assert await router.upstreams["browser"].ready(60)
        return [await _figures(router, host) for host in hosts]


def table(rows: Sequence[Figures]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| host | 20 calls | pictures | a script | pictures | its declaration |"
    yield "|---|--:|--:|--:|--:|--:|"
    for row in rows:
        saved = 1 - row.script / row.calls
        yield (
            f"| {row.title} | {row.calls:,} | {row.pictures[0]} | {row.script:,} (-{saved:.0%}) | {row.pictures[1]} "
            f"| {row.declared:,} |"
        )


def saves_enough(rows: Sequence[Figures]) -> bool:
    """Whether a script costs no host more than `MOST` of the calls."""
    return all(row.script <= MOST * row.calls for row in rows)
