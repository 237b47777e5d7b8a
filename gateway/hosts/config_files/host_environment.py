"""Finding environment variables that a configuration uses, but that a host may not pass to the gateway."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.config.documents import read_document
from gateway.config.expansion import references
from gateway.config.foreign import translate_document
from gateway.config.load_settings import PYTHON_VARIABLE

_EVERYWHERE = frozenset(
    [
        *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"),
        *("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PROCESSOR_ARCHITECTURE", "SYSTEMDRIVE"),
        *("SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE", "PROGRAMFILES"),
        PYTHON_VARIABLE,
    ]
)
"""Variables that every host passes, as does the gateway: DEFAULT_INHERITED_ENV_VARS of the official SDKs.

Sources: TypeScript, packages/client/src/client/stdio.ts; Python, mcp/client/stdio.py.
"""


@dataclass(frozen=True)
class Missing:
    """Names of variables that a host may lack: `needed` ones to start at all; without `empty` ones a value is empty."""

    needed: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All names."""
        return (*self.needed, *self.empty)

    def sentences(self, configuration: Path, title: str) -> Iterator[str]:
        """Yield sentences, at most two, on the consequences for a host called `title`."""
        if self.needed:
            text = f"{configuration} needs {', '.join(self.needed)}"
            yield f"{text}: where {title} does not have {_it(self.needed)}, the gateway does not start"
        if self.empty:
            text = f"{configuration} uses {', '.join(self.empty)}"
            yield f"{text}: where {title} does not have {_it(self.empty)}, upstreams get an empty value"

    def options(self, environ: Mapping[str, str]) -> str:
        """Return the options of `install` that pass the variables to the host, for those that are set here."""
        return " ".join(f"--env {name}" if name in environ else f"--env {name}=VALUE" for name in self.names)


def missing_in_host(configuration: Path, given: Mapping[str, str]) -> Missing:
    """Return the variables that the configuration refers to, and that neither `given` nor every host has.

    A variable may be missing if its reference has a default that is not empty. Raises ConfigError if the file cannot be
    read.
    """
    document = read_document(configuration)
    if configuration.suffix.lower() == ".json":
        document = translate_document(document).document
    needed: dict[str, None] = {}
    empty: dict[str, None] = {}
    for name, default in references(document):
        if name in given or name.upper() in _EVERYWHERE or default:
            continue
        (needed if default is None else empty)[name] = None
    return Missing(tuple(needed), tuple(name for name in empty if name not in needed))


def _it(names: tuple[str, ...]) -> str:
    return "it" if len(names) == 1 else "them"
