"""The metrics of several processes as one text for Prometheus, in which each series says whose it is.

They are not added up: a process that is started again begins at zero, which Prometheus takes for a restart of that
series alone. In a sum, it would look as if everything had been counted once more.
"""

from collections.abc import Iterable, Sequence

LABEL = "worker"

_OF_ALL = frozenset({"mcp_gateway_info", "mcp_gateway_store_bytes", "mcp_gateway_store_items"})
"""Metrics of what the processes have in common: given once."""
_NAMED = "# HELP "


def labelled(text: str, worker: int) -> str:
    """Return the metrics of one process with a label for it, except those of what all have in common."""
    return "".join(_with_label(line, worker) + "\n" for line in text.splitlines())


def merged(texts: Sequence[str]) -> str:
    """Return the metrics of all: each one's name and type once, with the series of every process."""
    families: dict[str, list[str]] = {}
    described: dict[str, list[str]] = {}
    for place, text in enumerate(texts):
        for name, lines in _families(text):
            about = [line for line in lines if line.startswith("#")]
            described.setdefault(name, about)
            if not place or name not in _OF_ALL:
                families.setdefault(name, []).extend(line for line in lines if not line.startswith("#"))
    return "".join(f"{line}\n" for name, about in described.items() for line in (*about, *families.get(name, ())))


def _families(text: str) -> Iterable[tuple[str, list[str]]]:
    lines: list[str] = []
    name = ""
    for line in text.splitlines():
        if line.startswith(_NAMED):
            if lines:
                yield name, lines
            name, lines = line.removeprefix(_NAMED).partition(" ")[0], []
        lines.append(line)
    if lines:
        yield name, lines


def _with_label(line: str, worker: int) -> str:
    name, brace, rest = line.partition("{")
    if not line or line.startswith("#") or name.partition(" ")[0] in _OF_ALL:
        return line
    if brace:
        return f'{name}{{{LABEL}="{worker}",{rest}'
    name, _, value = line.partition(" ")
    return f'{name}{{{LABEL}="{worker}"}} {value}'
