"""Changes of the configuration: shown as a diff first, and then written by the functions that the commands use.

A form says what to change. It is sent twice: to see the difference, and to write it, with a mark of what was seen. Both
times the new text is made of the file as it is then; if the file or the new text is another one meanwhile, nothing is
written.
"""

import hashlib
import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from anyio import to_thread
from starlette.requests import Request

from gateway.config.expansion import NoValue
from gateway.config.logins import with_time_to_log_in
from gateway.config.secret_sources import keep_in_keyring
from gateway.config.settings_diff import OF_UPSTREAMS
from gateway.core.model.json_values import is_list
from gateway.core.model.toolset_scope import scope_as_written
from gateway.core.tools.catalogue.choose_tools import ToolChoice
from gateway.errors import ConfigError, GatewayError, InvalidRequest
from gateway.hosts.config_files.configuration_file import ConfigurationFile
from gateway.hosts.config_files.starter_config import check_upstream, from_line
from gateway.hosts.config_files.upstream_edits import ConfigurationText
from gateway.serving.console.console import Console
from gateway.serving.console.edit_toolset import with_edited_toolset, without_edited_toolset
from gateway.serving.console.found_servers import with_found_servers
from gateway.serving.console.registry_servers import with_registry_server
from gateway.serving.console.shown_difference import shown_difference
from gateway.serving.console.submitted import Submitted, submitted
from gateway.serving.console.toolsets import toolset_effect
from gateway.serving.console.views import View

logger = logging.getLogger(__name__)

_NO_FILE = "this gateway was started without a configuration file, so there is none to change"
_FROM_REGISTRY = "registry"
_TOOLSET = "toolset"
_BEGIN_ONE = "`mcp-gateway init` or `mcp-gateway import` writes one; then start the gateway with --config"

Change = Callable[[ConfigurationText, Submitted], ConfigurationText]


class ProposedChange(NamedTuple):
    """A change that can be written: the file as it was read, its new text, and the mark of both."""

    file: ConfigurationFile
    before: ConfigurationText
    after: ConfigurationText
    in_keyring: Mapping[str, str] = MappingProxyType({})
    """Secrets that are stored when it is written, by the names of their entries."""

    @property
    def mark(self) -> str:
        """A digest of what the file holds and of what it will hold."""
        return hashlib.sha256(f"{self.before.text}\0{self.after.text}".encode("utf-8", "surrogatepass")).hexdigest()


def configuration_file(console: Console) -> ConfigurationFile:
    """Read the configuration file of the gateway, blocking.

    Raises:
        ConfigError: it has none, or it cannot be read.
    """
    if console.operation.config is None:
        raise ConfigError(_NO_FILE, remedy=_BEGIN_ONE)
    return ConfigurationFile.read(console.operation.config)


def propose(console: Console, form: Submitted) -> ProposedChange:
    """Return the change that a form asks for, blocking, in a thread of the event loop's.

    Raises:
        ConfigError: the file cannot be changed like this.
        InvalidRequest: the form asks for nothing that can be done.
        RegistryUnavailable: it asks for a server of the registry, which does not answer.
    """
    change = _CHANGES.get(form.line("change"))
    if change is None and form.line("change") != _FROM_REGISTRY:
        known = ", ".join([*_CHANGES, _FROM_REGISTRY])
        raise InvalidRequest("this is not a change", remedy=f"`change` is one of {known}")
    file = configuration_file(console)
    before = file.text
    if change is None:
        return ProposedChange(file, before, *with_registry_server(console, before, form))
    return ProposedChange(file, before, change(before, form))


def _enable(text: ConfigurationText, form: Submitted) -> ConfigurationText:
    return text.with_enabled(form.line("name"), enabled=True)


def _disable(text: ConfigurationText, form: Submitted) -> ConfigurationText:
    return text.with_enabled(form.line("name"), enabled=False)


def _remove(text: ConfigurationText, form: Submitted) -> ConfigurationText:
    return text.without_upstream(form.line("name"))


def _choose_tools(text: ConfigurationText, form: Submitted) -> ConfigurationText:
    """Offer those of the `listed` tools that are `offered`, and no others of them."""
    name, offered = form.line("name"), frozenset(form.all("offered"))
    written: Mapping[str, Any] = text.upstreams().get(name, {}).get("tools", {})
    include, exclude = (written.get(key, usual) for key, usual in (("include", ["*"]), ("exclude", [])))
    if not is_list(include) or not is_list(exclude):
        raise ConfigError("must be lists of texts", where=f"{text.file}: upstreams.{name}.tools")
    chosen = ToolChoice(tuple(map(str, include)), tuple(map(str, exclude)))
    changed = chosen.changed({tool: tool in offered for tool in form.all("listed")})
    return text.with_tools(name, changed.include, changed.exclude)


def _add(text: ConfigurationText, form: Submitted) -> ConfigurationText:
    name, upstream = form.line("name"), added_upstream(form)
    changed = text.with_upstream(name, upstream)
    check_upstream(name, upstream)
    return changed


def added_upstream(form: Submitted) -> dict[str, Any]:
    """Return the table of the upstream that a form describes: `server` is its URL or its command line.

    Raises:
        ConfigError: it describes none.
    """
    server, headers, env = form.line("server"), form.lines("headers"), form.lines("env")
    if server.startswith(("http://", "https://")):
        if env:
            raise ConfigError("variables are for a command; a URL takes headers")
        given = dict(_pair(line, ":", "NAME: VALUE") for line in headers)
        return {"url": server, **({"headers": given} if given else {})}
    if headers:
        raise ConfigError("headers are for a URL; a command takes variables")
    given = dict(_pair(line, "=", "NAME=VALUE") for line in env)
    try:
        upstream = from_line(server)
    except ConfigError as error:
        remedy = "give the address of a server, or a command line such as `npx -y some-server`"
        raise ConfigError(f"the command line {error.message.partition(': ')[2]}", remedy=remedy) from None
    return with_time_to_log_in({**upstream, **({"env": given} if given else {})})


def _pair(line: str, separator: str, form: str) -> tuple[str, str]:
    name, found, value = line.partition(separator)
    if not found or not name.strip():
        raise ConfigError(f"give each as {form}, in a line of its own")
    return name.strip(), value.strip()


_CHANGES: Mapping[str, Change] = {
    "add": _add,
    "disable": _disable,
    "enable": _enable,
    "import": with_found_servers,
    "remove": _remove,
    "remove-toolset": without_edited_toolset,
    "tools": _choose_tools,
    _TOOLSET: with_edited_toolset,
}


async def _shown(console: Console, request: Request) -> Mapping[str, Any]:
    """Return the difference that a form makes: `file`, `lines` of a unified diff, secrets masked, and `mark`.

    `lines` is empty if it changes nothing. `effect` is what a changed toolset would have.
    """
    form = await submitted(request)
    proposed = await to_thread.run_sync(propose, console, form)
    texts = (proposed.before.text, proposed.after.text)
    lines = await to_thread.run_sync(shown_difference, console.gateway.settings, *texts, proposed.file.path)
    effect = None
    if form.line("change") == _TOOLSET and lines:
        written = proposed.after.toolsets()[form.line("name")]
        effect = await to_thread.run_sync(toolset_effect, console, scope_as_written(form.line("name"), written))
    told = {"file": str(proposed.file.path), "lines": lines, "mark": proposed.mark}
    return {**told, "change": form.line("change"), "effect": effect}


async def _written(console: Console, request: Request) -> Mapping[str, Any]:
    """Write a change whose difference was seen, and return what it changes in the running gateway.

    `applied` names what is in force, `restart_needed` what the next start brings, `problem` why nothing is.
    """
    form = await submitted(request)
    proposed = await to_thread.run_sync(propose, console, form)
    if form.line("mark") != proposed.mark:
        raise InvalidRequest(
            "the configuration was changed meanwhile, so nothing was written", remedy="look at the change once more"
        )
    await to_thread.run_sync(_write, proposed)
    logger.info("the configuration was changed in the console: %s %s", form.line("change"), form.line("name"))
    told = {"file": str(proposed.file.path), "change": form.line("change"), "name": form.line("name")}
    try:
        difference = await console.operation.reload()
    except GatewayError as error:
        return {**told, "applied": [], "restart_needed": [], "problem": str(error)}
    return {**told, "applied": _in_words(difference), "restart_needed": difference["restart_needed"], "problem": None}


def _write(proposed: ProposedChange) -> None:
    for entry, value in proposed.in_keyring.items():
        try:
            keep_in_keyring(entry, value)
        except NoValue as failed:
            raise ConfigError(f"{entry} cannot be stored: {failed}", remedy=failed.remedy) from None
    proposed.file.write(proposed.after)


def _in_words(difference: Mapping[str, Any]) -> list[str]:
    applied = [f"{name} {kind}" for kind in OF_UPSTREAMS for name in difference[kind]]
    return [*applied, *difference["applied"]]


VIEWS = (
    View("/changes/show", "change_shown.html", _shown, "servers", method="POST"),
    View("/changes/write", "change_written.html", _written, "servers", method="POST"),
)
