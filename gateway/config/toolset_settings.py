"""The tables `[toolsets]`: the parts of the upstreams that hosts can be given alone (docs/toolsets.md)."""

from collections.abc import Iterable, Mapping

from pydantic import field_validator, model_validator

from gateway.config.section import Section
from gateway.core.fact_words import plain
from gateway.core.model.toolset_scope import SEPARATOR, ToolsetScope, problem_in
from gateway.core.near_names import which_name
from gateway.errors import UnknownToolset

AUTO = "auto"
"""In a path, in place of a profile: that of the host."""


class ToolsetSettings(Section):
    """What is in a toolset. Patterns are shell globs; `upstream__name` has the upstream's own name for something."""

    upstreams: tuple[str, ...] = ()
    """Upstreams that are in it as a whole: their tools, prompts and resources."""
    tools: tuple[str, ...] = ()
    """More tools, as `upstream__tool`."""
    exclude: tuple[str, ...] = ()
    """Tools that are not in it, as `upstream__tool`, whatever the rest says."""
    prompts: tuple[str, ...] = ()
    """More prompts, as `upstream__prompt`."""
    resources: tuple[str, ...] = ()
    """More resources, as `upstream__uri`: `docs__file:///srv/docs/*`."""

    @field_validator("tools", "exclude", "prompts", "resources")
    @classmethod
    def _have_an_upstream(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            upstream, separator, name = pattern.partition(SEPARATOR)
            if not (upstream and separator and name):
                raise ValueError(
                    f"{pattern!r} has no upstream: patterns are UPSTREAM__NAME; * may stand for either, as in *__search"
                )
        return patterns

    @model_validator(mode="after")
    def _names_something(self) -> "ToolsetSettings":
        if not (self.upstreams or self.tools or self.prompts or self.resources):
            raise ValueError("names nothing: give upstreams, tools, prompts or resources")
        return self

    def scope(self, name: str) -> ToolsetScope:
        """Return it as the rule that lists and calls are decided by."""
        return ToolsetScope(name, self.upstreams, self.tools, self.exclude, self.prompts, self.resources)


Toolsets = Mapping[str, ToolsetSettings]


def toolset_problem(toolsets: Toolsets, upstreams: Iterable[str]) -> str | None:
    """Return which toolset has nothing of any upstream, and what there is; None if there is no such toolset."""
    names = list(upstreams)
    for name, toolset in toolsets.items():
        scope = toolset.scope(name)
        if not any(scope.has(upstream) for upstream in names):
            patterns = (*scope.upstreams, *scope.tools, *scope.prompts, *scope.resources)
            there = f"the upstreams are: {', '.join(names)}" if names else "there are no upstreams"
            return f"toolsets.{name} names nothing: {', '.join(map(repr, patterns))} match no upstream; {there}"
    return None


def no_toolset(name: str) -> str:
    """Say that a toolset does not exist, or what is wrong with the project's file that should have named one."""
    problem = problem_in(name)
    return f"there is no toolset {plain(name, 80)!r}" if problem is None else plain(problem, 500)


def which_toolset(name: str, toolsets: Iterable[str]) -> str | None:
    """Return the remedy for the name of a toolset that does not exist; what is wrong with a file has its own."""
    if problem_in(name) is not None:
        return None
    return which_name(name, list(toolsets), none="the configuration has no table [toolsets.NAME]")


def scopes_of(toolsets: Toolsets, names: Iterable[str]) -> tuple[ToolsetScope, ...]:
    """Return the toolsets of these names.

    Raises:
        UnknownToolset: one of them does not exist.
    """
    wanted = tuple(dict.fromkeys(names))
    for name in wanted:
        if name not in toolsets:
            raise UnknownToolset(no_toolset(name), remedy=which_toolset(name, toolsets))
    return tuple(toolsets[name].scope(name) for name in wanted)
