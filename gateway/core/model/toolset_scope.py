"""A toolset: the part of the upstreams that a host is to have. Standard library only, as `grant`.

One rule decides what is listed and what is called, read or asked for.
"""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from gateway.core.model.dot_segments import has_dot_segments
from gateway.core.model.json_values import is_list

SEPARATOR = "__"
"""Between an upstream's name and a tool's. No upstream's name contains it, so a name splits in one way only.

Patterns have it between a tool's own names, whatever name the tool is offered under.
"""

_UNUSABLE = "unusable: "
"""The beginning of the name that stands for a file that cannot be used. No toolset has such a name: it has a space."""
_LONGEST_PROBLEM = 400


def broken_toolset(problem: str) -> str:
    """Return the name of the toolset of a project whose file cannot be used: none has it, so its host gets nothing."""
    return f"{_UNUSABLE}{problem[:_LONGEST_PROBLEM]}"


def problem_in(name: str) -> str | None:
    """Return the problem with the file that such a name stands for; None for any other name."""
    return name.removeprefix(_UNUSABLE) if name.startswith(_UNUSABLE) else None


class ToolsetScope(NamedTuple):
    """Shell globs: `upstreams` on the names of upstreams that are in it as a whole, the others on `upstream__name`.

    `tools` and `prompts` are in it besides, by the upstream's own names for them, and `resources` by their URIs.
    `exclude` are tools that are not in it even so.
    """

    name: str
    upstreams: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()

    def has(self, upstream: str) -> bool:
        """Whether anything of the upstream may be in it."""
        named = (pattern.partition(SEPARATOR)[0] for pattern in (*self.tools, *self.prompts, *self.resources))
        return self.has_whole(upstream) or any(fnmatchcase(upstream, glob) for glob in named)

    def has_whole(self, upstream: str) -> bool:
        """Whether all of the upstream is in it, but for excluded tools."""
        return any(fnmatchcase(upstream, glob) for glob in self.upstreams)

    def has_tool(self, upstream: str, tool: str) -> bool:
        """Whether a tool is in it, by its own name."""
        return (self.has_whole(upstream) or _named(self.tools, upstream, tool)) and not _named(
            self.exclude, upstream, tool
        )

    def has_prompt(self, upstream: str, prompt: str) -> bool:
        """Whether a prompt is in it, by its own name."""
        return self.has_whole(upstream) or _named(self.prompts, upstream, prompt)

    def has_resource(self, upstream: str, uri: str) -> bool:
        """Whether a resource is in it, by its upstream's own URI; a template by the text of the template."""
        if self.has_whole(upstream):
            return True
        return not has_dot_segments(uri) and _named(self.resources, upstream, uri)

    def changed(self, wanted: Mapping[tuple[str, str], bool]) -> "ToolsetScope":
        """Return the toolset that has or hides the tools named here, by upstream and name; the rest stays as it is.

        A name is removed where it stands by itself before a pattern is added. A pattern of `exclude` that also fits a
        tool to be had gives way to the names of the others.
        """
        has = [tool for tool, is_had in wanted.items() if is_had]
        hides = [tool for tool, is_had in wanted.items() if not is_had]
        alone = {_pattern_for(*tool) for tool in hides}
        tools = tuple(pattern for pattern in self.tools if pattern not in alone)
        exclude = tuple(pattern for pattern in self.exclude if not any(_named([pattern], *tool) for tool in has))
        more = [tool for tool in has if not self.has_whole(tool[0]) and not _named(tools, *tool)]
        kept = self._replace(tools=(*tools, *(_pattern_for(*tool) for tool in more)), exclude=exclude)
        less = tuple(_pattern_for(*tool) for tool in hides if kept.has_tool(*tool))
        return kept._replace(exclude=kept.exclude + less)


def scope_as_written(name: str, table: Mapping[str, Any]) -> ToolsetScope:
    """Return the toolset of a table that has not been validated; what is not a list of texts counts as empty."""

    def texts(key: str) -> tuple[str, ...]:
        given = table.get(key)
        return tuple(one for one in given if isinstance(one, str)) if is_list(given) else ()

    return ToolsetScope(name, *(texts(key) for key in ToolsetScope._fields[1:]))


def _pattern_for(upstream: str, name: str) -> str:
    """Return the pattern that fits this tool alone."""
    return upstream + SEPARATOR + "".join(f"[{char}]" if char in "*?[" else char for char in name)


def _named(patterns: Iterable[str], upstream: str, name: str) -> bool:
    """Whether a pattern `upstream__name` matches in both of its parts."""
    split = (pattern.partition(SEPARATOR) for pattern in patterns)
    return any(fnmatchcase(upstream, first) and fnmatchcase(name, second) for first, _, second in split)
