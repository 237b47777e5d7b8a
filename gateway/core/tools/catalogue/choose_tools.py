"""The choice of an upstream's tools, changed for single tools: its lists of shell globs are kept as far as possible."""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple


class ToolChoice(NamedTuple):
    """Which tools are offered: those that a pattern of `include` fits, and none of `exclude`. Shell globs."""

    include: tuple[str, ...]
    exclude: tuple[str, ...]

    def has(self, name: str) -> bool:
        """Whether a tool of this name is offered."""
        return _fits(name, self.include) and not _fits(name, self.exclude)

    def changed(self, offered: Mapping[str, bool]) -> "ToolChoice":
        """Return the choice in which the tools named here are offered or not; patterns that agree with it stay.

        A name is removed where it stands by itself before a pattern is added. A pattern of `exclude` that also fits a
        tool to be offered gives way to the names of the others.
        """
        wanted = [name for name, is_offered in offered.items() if is_offered]
        unwanted = [name for name, is_offered in offered.items() if not is_offered]
        names = {pattern_for(name) for name in unwanted}
        include = tuple(pattern for pattern in self.include if pattern not in names)
        exclude = tuple(pattern for pattern in self.exclude if not any(fnmatchcase(name, pattern) for name in wanted))
        include += _patterns(name for name in wanted if not _fits(name, include))
        kept = ToolChoice(include, exclude)
        return ToolChoice(include, exclude + _patterns(name for name in unwanted if kept.has(name)))


def pattern_for(name: str) -> str:
    """Return the pattern that fits this name alone."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)


def _patterns(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(pattern_for, names))


def _fits(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
