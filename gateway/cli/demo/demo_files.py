"""The demo's files and ports, in a clone or an installed wheel: examples, configuration, free ports."""

import importlib.util
import os
import secrets
import socket
import sys
import tempfile
import tomllib
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.config.toml_text import table_text
from gateway.errors import ConfigError

_HERE = Path(__file__).resolve().parent
_ROOT = _HERE.parents[2]


@dataclass(frozen=True)
class DemoFiles:
    """The files, ports and token of one run of the demo.

    `examples` is the package of the example upstreams, importable from `folder`. `config` is the shipped
    mcp-gateway.toml with the ports below. `token` is required by the gateway over HTTP.
    """

    examples: str
    folder: Path
    config: Path
    documents_port: int
    sounds_port: int
    gateway_port: int
    token: str

    @property
    def documents_url(self) -> str:
        """The documents upstream (Streamable HTTP)."""
        return f"http://127.0.0.1:{self.documents_port}/mcp"

    @property
    def sounds_url(self) -> str:
        """The sounds upstream (HTTP+SSE)."""
        return f"http://127.0.0.1:{self.sounds_port}/sse"

    def example_command(self, name: str, *more: str) -> list[str]:
        """Return the command that starts an example upstream."""
        return [sys.executable, "-m", f"{self.examples}.{name}", *more]

    def serve_command(self, *more: str) -> list[str]:
        """Return the command that starts the gateway."""
        return [sys.executable, "-m", "gateway", "serve", "--config", str(self.config), *more]

    def variables(self) -> Mapping[str, str]:
        """The environment variables of the gateway and the examples, beside those that every process needs."""
        passed = {name: os.environ[name] for name in ("PYTHONPATH", "TMPDIR") if name in os.environ}
        return {**passed, "MCP_GATEWAY_TOKEN": self.token}


@contextmanager
def demo_setting() -> Generator[DemoFiles]:
    """Yield the demo's files with ports that are free now. The configuration exists until the block is left.

    Raises:
        ConfigError: the examples or the shipped configuration are missing or cannot be read.
    """
    ports = _free_ports(3)
    package, folder = _examples()
    shipped = _shipped_config()
    with tempfile.TemporaryDirectory(prefix="mcp-gateway-demo-") as scratch:
        config = Path(scratch) / "mcp-gateway.toml"
        setting = DemoFiles(package, folder, config, ports[0], ports[1], ports[2], secrets.token_hex(16))
        try:
            document = tomllib.loads(shipped.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigError(str(error), where=str(shipped)) from error
        config.write_text(table_text((), place_config(document, setting)), encoding="utf-8")
        yield setting


def place_config(document: Mapping[str, Any], setting: DemoFiles) -> dict[str, Any]:
    """Adapt the shipped configuration to this machine, and return it.

    Changed are only the Python executable, the folder and package of the examples, and the ports, which are free ones.
    """
    upstreams = {name: dict(upstream) for name, upstream in document["upstreams"].items()}
    charts = setting.example_command("charts")
    upstreams["charts"] |= {"command": charts[0], "args": charts[1:], "cwd": str(setting.folder)}
    upstreams["documents"]["url"] = setting.documents_url
    upstreams["sounds"]["url"] = setting.sounds_url
    return {**document, "upstreams": upstreams}


def _examples() -> tuple[str, Path]:
    """Return the examples beside the package in a clone, or else those installed with it."""
    if (_ROOT / "examples" / "charts").is_dir():
        return "examples", _ROOT
    spec = importlib.util.find_spec("gateway_examples")
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError("the example servers are not installed", remedy="install the wheel, or run in a clone")
    return "gateway_examples", Path(spec.submodule_search_locations[0]).parent


def _shipped_config() -> Path:
    """Return the shipped configuration, which is beside this module in a wheel, and at the root of a clone."""
    for place in (_HERE / "mcp-gateway.toml", _ROOT / "mcp-gateway.toml"):
        if place.is_file():
            return place
    raise ConfigError("the shipped mcp-gateway.toml is missing", remedy="install the wheel, or run in a clone")


def _free_ports(count: int) -> list[int]:
    """Return unused ports of the loopback address. All are held until the last is found, so they differ."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in sockets]
