"""Every way that a call can take, and how the gateway on it is started."""

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, NamedTuple

from benchmarks.calls.wire import Era

ROOT: Final = Path(__file__).resolve().parents[2]
ENVIRONMENTS: Final = ROOT / ".venv"
Transport = Literal["http", "stdio"]


@dataclass(frozen=True)
class Setting:
    """Where a gateway stands: how its host and its upstream speak, and how many tools there are."""

    front: Transport
    back: Transport
    era: Era
    tools: int = 0
    """None more than those that are called, unless there are to be so many."""

    def __str__(self) -> str:
        many = f", {self.tools:,} tools" if self.tools else ""
        return f"{self.front} to {self.back}, {self.era}{many}"

    def with_tools(self, tools: int) -> "Setting":
        """The same with another number of tools."""
        return replace(self, tools=tools)


class Place(NamedTuple):
    """What a command needs to know beside the setting: the ports of the gateway and of the upstream, and a folder."""

    setting: Setting
    port: int
    upstream_port: int
    folder: Path

    @property
    def front(self) -> str:
        """The port to listen on, or `stdio`."""
        return str(self.port) if self.setting.front == "http" else "stdio"

    @property
    def target(self) -> list[str]:
        """The upstream: a URL, or a command."""
        era, tools = self.setting.era, str(self.setting.tools)
        if self.setting.back == "http":
            return [f"http://127.0.0.1:{self.upstream_port}/{era}/{tools}"]
        return upstream_command("stdio", era, tools)


class Gateway(NamedTuple):
    """One way. `command` is None where it has no process, and gives None for a setting that it cannot be used in."""

    name: str
    about: str
    command: Callable[[Place], list[str] | None] | None
    environment: str | None = None
    """The environment that `make bench` brings for it, beside the project's own."""


def upstream_command(*arguments: str) -> list[str]:
    """The raw upstream."""
    return [sys.executable, "-m", "benchmarks.calls.upstream", *arguments]


def _ours(profile: str, module: str = "gateway") -> Callable[[Place], list[str]]:
    def command(place: Place) -> list[str]:
        stdio = place.setting.front == "stdio"
        listening = [] if stdio else ["--http", "--port", str(place.port)]
        upstream = ["--upstream", *place.target] if place.setting.back == "http" else ["--", *place.target]
        return [sys.executable, "-m", module, "serve", "--profile", profile, *listening, *upstream]

    return command


def _ours_alike(module: str) -> Callable[[Place], list[str]]:
    def command(place: Place) -> list[str]:
        return [sys.executable, "-m", module, place.front, place.setting.era, *place.target]

    return command


def _fastmcp(given: str) -> Callable[[Place], list[str]]:
    def command(place: Place) -> list[str]:
        script = str(Path(__file__).with_name("fastmcp_gateway.py"))
        return [_python("bench-fastmcp"), script, given, place.front, place.setting.era, *place.target]

    return command


def _mcp_proxy(place: Place) -> list[str] | None:
    """It leads from one transport to the other, and knows handshakes only."""
    start = [_python("bench-mcp-proxy"), "-m", "mcp_proxy", "--log-level", "WARNING"]
    match place.setting:
        case Setting(front="http", back="stdio", era=Era.HANDSHAKE):
            return [*start, "--pass-environment", "--port", str(place.port), "--", *place.target]
        case Setting(front="stdio", back="http", era=Era.HANDSHAKE):
            return [*start, "--transport", "streamablehttp", *place.target]
        case _:
            return None


def _python(environment: str) -> str:
    return str(ENVIRONMENTS / environment / "bin" / "python")


PASSTHROUGH: Final = "passthrough"
NAIVE: Final = "naive"
FLOOR: Final = "floor"
DIRECT: Final = "direct"
CONNECTED: Final = "FastMCP, connected"
BY_TARGET: Final = "FastMCP, by URL"
MCP_PROXY: Final = "mcp-proxy"

GATEWAYS: Final[tuple[Gateway, ...]] = (
    Gateway(DIRECT, "no gateway: the raw upstream itself, on the host's transport", None),
    Gateway(FLOOR, "an asyncio protocol that parses, routes and serialises, and can do nothing else",
            _ours_alike("benchmarks.calls.floor_gateway")),
    Gateway(NAIVE, "60 lines on the MCP SDK, the base of the ratios", _ours_alike("benchmarks.calls.naive_gateway")),
    Gateway(PASSTHROUGH, "this gateway, everything as it is", _ours(PASSTHROUGH)),
    Gateway("default", "this gateway, for a host that nothing is known about", _ours("default")),
    Gateway("claude-code", "this gateway, in the shape for Claude Code", _ours("claude-code")),
    Gateway(CONNECTED, "FastMCP's `create_proxy` with a connected client", _fastmcp("connected"), "bench-fastmcp"),
    Gateway(BY_TARGET, "FastMCP's `create_proxy` with a URL or a command", _fastmcp("target"), "bench-fastmcp"),
    Gateway(MCP_PROXY, "mcp-proxy, which leads from one transport to the other", _mcp_proxy, "bench-mcp-proxy"),
)  # fmt: skip


def watched(profile: str) -> Gateway:
    """This gateway, with a watch on its loop."""
    command = _ours(profile, "benchmarks.calls.watched_gateway")

    def with_file(place: Place) -> list[str]:
        name = place.folder / f"watched {profile}.blocks"
        return ["env", f"BENCH_WATCH={name}", *command(place)]

    return Gateway(f"watched {profile}", "this gateway, with a watch on its loop", with_file)


def many_upstreams(count: int) -> Gateway:
    """This gateway, with the same upstream under so many names."""

    def command(place: Place) -> list[str]:
        config = place.folder / f"{count}.toml"
        config.write_text("".join(f'[upstreams.u{number}]\nurl = "{place.target[0]}"\n' for number in range(count)))
        start = [sys.executable, "-m", "gateway", "serve", "--profile", PASSTHROUGH]
        return [*start, "--config", str(config), "--http", "--port", str(place.port)]

    return Gateway(f"{count} upstreams", "this gateway, with many upstreams", command)


def left_out(gateway: Gateway) -> str | None:
    """Why a gateway cannot be measured here; None if it can."""
    if gateway.environment is None or (ENVIRONMENTS / gateway.environment / ".installed").exists():
        return None
    failed = ENVIRONMENTS / f"{gateway.environment}.failed"
    lines = failed.read_text("utf-8", "replace").split("\n") if failed.exists() else []
    # No page is to name where packages come from.
    reasons = [re.sub(r"\w+://\S+", "(address)", line.strip()) for line in lines if line.strip()]
    return reasons[-1] if reasons else "it is not installed"


def environ(folder: Path) -> Mapping[str, str]:
    """The environment of everything that is started: nothing of the user's is touched, nor read."""
    ours = {"MCP_GATEWAY_CACHE": str(folder / "cache"), "MCP_GATEWAY_STATE": "", "XDG_RUNTIME_DIR": str(folder)}
    return {**os.environ, **ours, "PYTHONPATH": str(ROOT), "FASTMCP_CHECK_FOR_UPDATES": "off"}
