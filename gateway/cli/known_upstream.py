"""Names of servers on the command line: an unknown one is refused before anything is started."""

from collections.abc import Collection

from gateway.config.schema import Settings
from gateway.core.fact_words import plain
from gateway.core.near_names import which_name
from gateway.errors import ConfigError


def check_upstream(
    name: str,
    upstreams: Collection[str],
    *,
    where: str | None = None,
    or_program: bool = False,
    options: Collection[str] = (),
) -> None:
    """Raise ConfigError if `upstreams` has no such name; its remedy suggests the nearest one, and lists the others.

    `options`: words that are more likely meant as an option of the command.
    """
    if name in upstreams:
        return
    error = unknown_upstream(name, upstreams, where=where, or_program=or_program)
    if name in options:
        raise ConfigError(error.message, where=where, remedy=f"did you mean --{name}?")
    raise error


def unknown_upstream(
    name: str, upstreams: Collection[str], *, where: str | None = None, or_program: bool = False
) -> ConfigError:
    """Return the error for a name that no server has. `where` is the option that it was given with.

    `or_program`: the name might have been that of a program, and there is none either.
    """
    none = "the configuration has none: `mcp-gateway add` adds one"
    what = "neither an upstream nor a program" if or_program else "no upstream"
    return ConfigError(f"there is {what} {plain(name)!r}", where=where, remedy=which_name(name, upstreams, none=none))


def only_upstream(settings: Settings, name: str, where: str | None = None, *, or_program: bool = False) -> Settings:
    """Return the settings with only this upstream.

    Raises:
        ConfigError: there is none of this name; with `or_program`, nor a program.
    """
    check_upstream(name, settings.upstreams, where=where, or_program=or_program)
    chosen = settings.upstreams[name].model_copy(update={"enabled": True})
    return settings.model_copy(update={"upstreams": {name: chosen}})
