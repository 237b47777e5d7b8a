"""The simulated hosts, by name.

Most have the name of the profile that they should get; the others are variants of a host, by version, model API or
setting.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType

import gateway.hosts.simulators as simulators
from gateway.hosts.simulators.claude_code import CLAUDE_CODE
from gateway.hosts.simulators.claude_desktop import CLAUDE_DESKTOP
from gateway.hosts.simulators.cline import CLINE
from gateway.hosts.simulators.codex import CODEX
from gateway.hosts.simulators.gemini_cli import GEMINI_CLI
from gateway.hosts.simulators.host import SimulatedHost
from gateway.hosts.simulators.inspector import INSPECTOR
from gateway.hosts.simulators.openai_agents import UNKNOWN

FIRST: tuple[SimulatedHost, ...] = (CLAUDE_CODE, CLAUDE_DESKTOP, CODEX, GEMINI_CLI, CLINE, UNKNOWN, INSPECTOR)
"""The hosts used if none are named; they include every known way of treating a result."""


def _defined() -> Iterator[SimulatedHost]:
    """Yield every `SimulatedHost` defined in a module beside this one, so that a new one needs no entry in a list."""
    here = __name__.rpartition(".")[2]
    for name in sorted(module.name for module in iter_modules(simulators.__path__) if module.name != here):
        module = import_module(f"{simulators.__name__}.{name}")
        yield from (value for value in vars(module).values() if isinstance(value, SimulatedHost))


SIMULATORS: Mapping[str, SimulatedHost] = MappingProxyType({host.name: host for host in (*FIRST, *_defined())})
"""Every simulated host. `unknown` is the one that the gateway serves with its `default` profile."""
