"""Commands that messages suggest, with the options that this one was given, so that they can be pasted as they are."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gateway.cli.command_context import ALL
from gateway.core.model.revisions import REVISIONS

_TAKEN: Final[Mapping[str, frozenset[str]]] = {
    "doctor": frozenset({"config"}),
    "enable": frozenset({"config"}),
    "login": frozenset({"config"}),
    "tools": frozenset({"config", "upstream", "profile", "revision", "app", "toolset"}),
}
"""The options that each suggested command has in common with those that suggest it."""


@dataclass(frozen=True)
class GivenOptions:
    """What the running command was given: its servers, and the host that it plays."""

    config: Path | None = None
    upstream: Sequence[str] = ()
    profiles: Sequence[str] = ()
    """The names of `--profile`; a command that takes one is suggested with it only if it is the only one."""
    revision: str = REVISIONS[-1]
    app: bool = False
    toolset: str | None = None

    @property
    def is_configured(self) -> bool:
        """Whether the servers are those of a configuration, which can be edited and which `doctor` can check."""
        return not self.upstream

    def command(self, name: str, *words: str) -> str:
        """Return `mcp-gateway NAME WORDS` with the given options that it takes, quoted for a shell."""
        added = [option for option in self._words(_TAKEN[name]) if option[0] not in words]
        return shlex.join(["mcp-gateway", name, *words, *(word for option in added for word in option)])

    def _words(self, taken: frozenset[str]) -> list[list[str]]:
        is_one = len(self.profiles) == 1 and self.profiles[0] != ALL
        options = {
            "config": [["--config", str(self.config)]] if self.config is not None else [],
            "upstream": [["--upstream", url] for url in self.upstream],
            "profile": [["--profile", self.profiles[0]]] if is_one else [],
            "revision": [["--revision", self.revision]] if self.revision != REVISIONS[-1] else [],
            "app": [["--app"]] if self.app else [],
            "toolset": [["--toolset", self.toolset]] if self.toolset is not None else [],
        }
        return [words for name, several in options.items() if name in taken for words in several]
