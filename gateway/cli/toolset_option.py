"""The option `--toolset`: what a host with a toolset of the configuration is offered."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer

from gateway.config.project_file import PROJECT_FILE, project_file_here, toolsets_here
from gateway.config.schema import Settings
from gateway.config.toolset_settings import scopes_of, which_toolset
from gateway.core.fact_words import plain
from gateway.core.model.grant import EVERYTHING, Grant
from gateway.errors import ConfigError, UnknownTool

_LONGEST = 1_000

ToolsetName = Annotated[
    str | None, typer.Option("--toolset", metavar="NAME", help="Only what is in this toolset of the configuration.")
]


def toolsets_of(chosen: str | None, settings: Settings) -> tuple[str, ...]:
    """Return the toolsets of a host on stdio: the chosen one, and that of its project, if there are any.

    Raises:
        ConfigError: the project's file cannot be used.
    """
    if settings.toolsets:
        return toolsets_here(chosen)
    return () if chosen is None else (chosen,)


def check_toolsets(settings: Settings, names: Sequence[str], of_project: str | None = None) -> None:
    """Check that the toolsets exist. `of_project`: the one of them that only the project's file names.

    Raises:
        ConfigError: one of them does not.
    """
    for name in names:
        if name not in settings.toolsets:
            raise ConfigError(
                f"there is no toolset {plain(name, 80)!r}",
                where="--toolset" if name != of_project else str(project_file_here() or PROJECT_FILE),
                remedy=which_toolset(name, settings.toolsets),
            )


def narrowed(grant: Grant, settings: Settings, names: Sequence[str], of_project: str | None = None) -> Grant:
    """Return the grant with what these toolsets leave of it. Raises ConfigError if one does not exist."""
    check_toolsets(settings, names, of_project)
    return grant._replace(within=scopes_of(settings.toolsets, names)) if names else grant


@contextmanager
def naming_toolset(settings: Settings, name: str | None) -> Generator[None]:
    """Context manager: a tool that is not there is said to be hidden by this toolset, with what the toolset has."""
    try:
        yield
    except UnknownTool as error:
        if name is None:
            raise
        toolset = settings.toolsets[name]
        has = [*(f"{upstream}__*" for upstream in toolset.upstreams), *toolset.tools]
        but = f" except {', '.join(toolset.exclude)}" if toolset.exclude else ""
        what = f"has {', '.join(has)}{but}" if has else "has no tools"
        words = f"{error.message}: the toolset {name!r} hides all but its own tools, and {what}"
        raise UnknownTool(plain(words, _LONGEST), remedy=error.remedy) from None


def reached_of(settings: Settings, names: Sequence[str], of_project: str | None = None) -> Settings:
    """Return the settings with the upstreams that are in all of these toolsets: no other has to be started.

    `of_project`: the one of them that only the project's file names.

    Raises:
        ConfigError: one of them does not exist.
    """
    grant = narrowed(EVERYTHING, settings, names, of_project)
    reached = {name: one for name, one in settings.upstreams.items() if grant.reaches(name)}
    return settings.model_copy(update={"upstreams": reached}) if names else settings


def served_of(settings: Settings, names: Sequence[str], of_project: str | None) -> Settings:
    """Return the same for a gateway that serves a host, with no upstream if the toolset of its project does not exist.

    Then the host is offered nothing, and told why; a gateway that does not start would not be able to say so.

    Raises:
        ConfigError: the chosen one does not exist.
    """
    if of_project is None or of_project in settings.toolsets:
        return reached_of(settings, names, of_project)
    check_toolsets(settings, [name for name in names if name != of_project])
    return settings.model_copy(update={"upstreams": {}})
