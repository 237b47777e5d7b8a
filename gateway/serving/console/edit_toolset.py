"""Changing a toolset in the console: its patterns as lists, and single tools by their ticks.

The change is shown as a diff first, with what the toolset would have, and written as any other change.
"""

from gateway.config.problems import config_error
from gateway.config.schema import Settings
from gateway.config.validation import validate
from gateway.core.model.toolset_scope import SEPARATOR, ToolsetScope, scope_as_written
from gateway.errors import ConfigError, InvalidRequest
from gateway.hosts.config_files.upstream_edits import ConfigurationText
from gateway.serving.console.submitted import Submitted

PATTERNS = ToolsetScope._fields[1:]
"""The lists of a toolset."""


def with_edited_toolset(text: ConfigurationText, form: Submitted) -> ConfigurationText:
    """Return the configuration with a toolset as a form has it, new (`is_new`) or not.

    Its lists have a pattern a line; those that the form does not have stay. Tools that are `listed` and whose tick
    (`offered`) is not what the file says are put in it or left out, by their own names.

    Raises:
        ConfigError: there is one of that name already or none, it names nothing, or the text cannot be changed exactly.
    """
    name, toolsets = form.line("name"), text.toolsets()
    if form.is_set("is_new") and name in toolsets:
        raise ConfigError(f"there is a toolset {name!r} already", remedy="choose another name, or change that one")
    if not form.is_set("is_new") and name not in toolsets:
        raise ConfigError(f"there is no toolset {name!r} in {text.file} any more", remedy="open the page again")
    written = scope_as_written(name, toolsets.get(name, {}))
    ticks = {tool: one for tool, one in _ticks(form).items() if one != written.has_tool(*tool)}
    scope = _with_lists(written, form).changed(ticks)
    patterns = {key: getattr(scope, key) for key in PATTERNS}
    _check(name, {key: list(value) for key, value in patterns.items() if value}, text)
    return text.with_toolset(name, patterns)


def without_edited_toolset(text: ConfigurationText, form: Submitted) -> ConfigurationText:
    """Return the configuration without a toolset.

    Raises:
        ConfigError: there is none of that name, somebody has it, or the text cannot be changed exactly.
    """
    return text.without_toolset(form.line("name"))


def _ticks(form: Submitted) -> dict[tuple[str, str], bool]:
    offered = frozenset(form.all("offered"))
    return {_tool(name): name in offered for name in form.all("listed")}


def _tool(name: str) -> tuple[str, str]:
    upstream, found, tool = name.partition(SEPARATOR)
    if not (upstream and found and tool):
        raise InvalidRequest("this is not a tool", remedy="`listed` and `offered` have tools as UPSTREAM__TOOL")
    return upstream, tool


def _with_lists(scope: ToolsetScope, form: Submitted) -> ToolsetScope:
    given = {key: tuple(dict.fromkeys(form.lines(key))) for key in PATTERNS if form.has(key)}
    return scope._replace(**given)


def _check(name: str, patterns: dict[str, list[str]], text: ConfigurationText) -> None:
    """Check a toolset by itself, with the upstreams of the file. Raises ConfigError if the gateway could not use it."""
    upstreams = {upstream: {"command": "-"} for upstream in text.upstreams()}
    _, problems = validate(Settings, {"upstreams": upstreams, "toolsets": {name: patterns}})
    if problems:
        raise config_error("this toolset", problems)
