"""Reading the servers of a host's configuration as upstreams of ours, with every value kept in our spelling."""

import glob
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from gateway.config.expansion import expand
from gateway.config.problems import dotted
from gateway.config.schema import Settings
from gateway.config.toml_text import table_text
from gateway.config.validation import validate
from gateway.core.model.json_values import as_object, is_list, is_object
from gateway.hosts.config_files.documents import Document
from gateway.hosts.config_files.host_format import HostFormat
from gateway.hosts.config_files.launch_command import is_own
from gateway.hosts.config_files.machine import Machine
from gateway.hosts.config_files.server_keys import BUILT_IN, LOGIN, OF_THE_HOST, READ, TIMEOUTS, TRANSPORTS
from gateway.hosts.config_files.variables import FoundVariable, Place, translate_variables, variable


@dataclass(frozen=True)
class Server:
    """A server of a host: its name there, the file, and the upstream that it becomes.

    `upstream` is a table of mcp-gateway.toml, or None: `obstacle` says why. `remarks` are for people: what was not
    carried over, which variables are missing. `own`: it is the gateway itself. `logs_in`: its host's entry says that
    the host logs in there (OAuth). `asks`: the host asks its user for a value that is not in the environment.
    """

    name: str
    host: str
    file: str
    project: str | None = None
    upstream: Mapping[str, Any] | None = None
    remarks: tuple[str, ...] = ()
    obstacle: str | None = None
    own: bool = False
    logs_in: bool = False
    asks: bool = False

    @property
    def origin(self) -> str:
        """A few words on where it comes from."""
        return f"{self.host}, {self.project}" if self.project else self.host


def read_servers(
    document: Document,
    host: HostFormat,
    at: Machine,
    *,
    table: tuple[str, ...] | None = None,
    project: str | None = None,
) -> tuple[Server, ...]:
    """Return every server in a host's file, including Claude Code's per-project ones; `project` is the file's folder.

    Raises:
        ConfigError: the file is malformed.
    """
    off: Sequence[str] = ()
    if host.name == "gemini-cli":
        off = _strings(as_object(document.data.get("mcp")).get("excluded"))
    servers = list(_in_table(document.table(table or host.table) or {}, document, host, at, project, off))
    if host.name == "claude-code" and project is None:
        for folder, settings in (document.table(("projects",)) or {}).items():
            off = _strings(as_object(settings).get("disabledMcpServers"))
            servers += _in_table(as_object(as_object(settings).get("mcpServers")), document, host, at, folder, off)
    return tuple(servers)


def _in_table(
    table: Mapping[str, Any],
    document: Document,
    host: HostFormat,
    at: Machine,
    project: str | None,
    off: Sequence[str],
) -> Iterator[Server]:
    """Yield the servers of one table; those in `off` are switched off elsewhere in the file."""
    for name, entry in table.items():
        if is_own(entry, at.gateway_ports):
            yield Server(name, host.title, document.where, project, own=True)
        elif not is_object(entry):
            yield Server(name, host.title, document.where, project, obstacle="is not an object")
        else:
            place = Place(at.home, at.separator, at.environ, project)
            given = dict(entry)
            reading = _Reading({**given, "disabled": True} if name in off else given, host, place, at)
            yield reading.server(name, document.where)


@dataclass
class _Obstacle(Exception):
    why: str


@dataclass
class _Reading:
    """Reads one entry; holds the results so far."""

    entry: dict[str, Any]
    host: HostFormat
    place: Place
    at: Machine
    found: FoundVariable = field(default_factory=FoundVariable)
    remarks: list[str] = field(default_factory=list[str])

    def server(self, name: str, file: str) -> Server:
        project = self.place.project
        try:
            upstream = self._upstream()
        except _Obstacle as obstacle:
            return Server(name, self.host.title, file, project, obstacle=obstacle.why)
        self._explain(upstream)
        logs_in = "url" in upstream and any(_says_login(self.entry.get(key)) for key in LOGIN)
        return Server(
            name,
            self.host.title,
            file,
            project,
            upstream,
            tuple(self.remarks),
            logs_in=logs_in,
            asks=bool(self.found.asked),
        )

    def _upstream(self) -> dict[str, Any]:
        upstream: dict[str, Any] = {}
        command = self._command(upstream)
        url = next((self.entry[key] for key in ("httpUrl", "url", "serverUrl", "uri") if self.entry.get(key)), None)
        if command is None and url is None:
            raise _Obstacle(self._why_neither())
        transport = self._transport()
        if command is None:
            upstream["url"] = self._translated(url)
            if transport in ("http", "sse"):
                upstream["transport"] = transport
            if headers := self._headers():
                upstream["headers"] = headers
        elif cwd := self._cwd():
            upstream["cwd"] = cwd
        if command is not None and (env := self._environment()):
            upstream["env"] = env
        self._limits(upstream)
        if self.entry.get("disabled") is True or self.entry.get("enabled") is False:
            upstream["enabled"] = False
        try:
            table_text(["upstreams", "it"], upstream)
        except ValueError as error:
            raise _Obstacle(f"holds a value that cannot be written: {error}") from None
        return self._valid(upstream)

    def _why_neither(self) -> str:
        """Say why an entry has neither a command nor a url."""
        if self.entry.get("type") in BUILT_IN:
            return "is a part of its host, not a server"
        if "settings" in self.entry or self.entry.get("source") == "extension":
            return "comes with an extension whose program only the host knows"
        return "has neither a command nor a url"

    def _command(self, upstream: dict[str, Any]) -> str | None:
        command: Any = self.entry.get("command") or self.entry.get("cmd")
        args: Any = self.entry.get("args")
        if is_object(command):  # Zed's older format: {"path", "args", "env"}
            inner = dict(command)
            self.entry["env"] = self.entry.get("env") or inner.get("env")
            command, args = inner.get("path"), args or inner.get("args")
        elif is_list(command):
            command, *args = command or [None]
        if not command:
            return None
        program = self._in_project(str(self._translated(command)))
        upstream["command"] = program
        if is_list(args) and args:
            upstream["args"] = [self._translated(_spelled(arg)) for arg in args]
        elif args:
            raise _Obstacle("args is not a list")
        return program

    def _in_project(self, command: str) -> str:
        """Resolve a relative path to a program, which is relative to the project's folder."""
        path = self.at.path(command)
        if self.place.project is None or len(path.parts) < 2 or path.is_absolute() or command.startswith(("~", "$")):
            return command
        return str(self.at.path(_literal(self.place.project), command))

    def _cwd(self) -> str | None:
        given, project = self.entry.get("cwd") or self.entry.get("workingDirectory"), self.place.project
        if not isinstance(given, str) or not given:
            return None if project is None else _literal(project)
        cwd = str(self._translated(given))
        if project is None or self.at.path(cwd).is_absolute() or cwd.startswith(("~", "$")):
            return cwd
        return str(self.at.path(_literal(project), cwd))

    def _transport(self) -> str | None:
        if self.entry.get("httpUrl"):
            return "http"
        if self.entry.get("type") in BUILT_IN:
            return None
        for key in ("type", "transport", "transportType"):
            said: Any = self.entry.get(key)
            if said is not None and str(said).casefold() not in TRANSPORTS:
                raise _Obstacle(f"speaks {said!s}, which the gateway does not")
            if said is not None:
                return TRANSPORTS[str(said).casefold()]
        return None

    def _environment(self) -> dict[str, str]:
        given = {key: value for table in ("env", "environment", "envs") for key, value in self._table(table).items()}
        env = {key: self._translated(_spelled(value)) for key, value in given.items() if value is not None}
        # Codex passes them on from its own environment, Goose from the keyring.
        for name in (*_strings(self.entry.get("env_vars")), *_strings(self.entry.get("env_keys"))):
            env.setdefault(name, variable(name, self.place, self.found))
        return env

    def _headers(self) -> dict[str, str]:
        given = {**as_object(self.entry.get("headers")), **as_object(self.entry.get("http_headers"))}
        headers = {key: self._translated(_spelled(value)) for key, value in given.items() if value is not None}
        for header, name in as_object(self.entry.get("env_http_headers")).items():
            headers[header] = variable(str(name), self.place, self.found)
        for key in ("bearer_token_env_var", "bearerTokenEnvVar"):
            if isinstance(name := self.entry.get(key), str):
                headers["Authorization"] = f"Bearer {variable(name, self.place, self.found)}"
        return headers

    def _table(self, key: str) -> Mapping[str, Any]:
        return as_object(self.entry.get(key))

    def _limits(self, upstream: dict[str, Any]) -> None:
        timeout: dict[str, float] = {}
        call: Any = self.entry.get("timeout")
        if _positive(call) and self.host.timeout_seconds is not None:
            timeout["call"] = round(call * self.host.timeout_seconds, 3)
        for key, (ours, seconds) in TIMEOUTS.items():
            if _positive(units := self.entry.get(key)):
                timeout[ours] = round(cast("float", units) * seconds, 3)
        timeout = {key: min(seconds, 86_400.0) for key, seconds in timeout.items()}
        if timeout.get("call", 120.0) < 120.0:
            timeout["idle"] = timeout["call"]
        if timeout:
            upstream["timeout"] = timeout
        tools: dict[str, list[str]] = {}
        for ours, theirs in (
            ("include", ("includeTools", "enabled_tools", "enabledTools", "available_tools")),
            ("exclude", ("excludeTools", "disabled_tools", "disabledTools")),
        ):
            names = [name for key in theirs for name in _strings(self.entry.get(key))]
            # Gemini CLI writes `name(arg, ...)` for a tool with limited arguments; only the name matters here.
            patterns = [glob.escape(re.sub(r"\(.*\)\Z", "", name)) for name in names]
            patterns += self._patterns(ours)
            if patterns:
                tools[ours] = patterns
        if tools:
            upstream["tools"] = tools

    def _patterns(self, which: str) -> list[str]:
        """Return patterns of names: Copilot CLI has a list of them, Hermes Agent and OpenClaw a table of two lists."""
        given: Any = self.entry.get("tools")
        if is_list(given):
            names = _strings(given) if which == "include" else []
            return [] if "*" in names else names
        found = [self._table(table).get(which) for table in ("tools", "toolFilter")]
        return [name for one in found for name in ([one] if isinstance(one, str) else _strings(one))]

    def _valid(self, upstream: dict[str, Any]) -> dict[str, Any]:
        """Return the upstream if the gateway can start with it now, and also if no variable is set."""
        problem = self._problem(upstream, self.place.environ)
        if problem is not None:
            raise _Obstacle(problem)
        if self._problem(upstream, {}) is not None:
            raise _Obstacle("its address needs a variable that other hosts do not have: write the address out")
        return upstream

    def _problem(self, upstream: dict[str, Any], environ: Mapping[str, str]) -> str | None:
        expanded, _ = expand({"upstreams": {"it": upstream}}, environ)
        _, problems = validate(Settings, expanded)
        if not problems:
            return None
        location = dotted(problems[0].location[2:])
        return f"{location} {problems[0].what}" if location else problems[0].what

    def _translated(self, value: Any) -> Any:
        return translate_variables(value, self.host.variables, self.place, self.found)

    def _explain(self, upstream: dict[str, Any]) -> None:
        if self.found.asked:
            upstream["enabled"] = False
            names = ", ".join(self.found.asked)
            self.remarks.append(f"its host asks for a value: set {names}, then enabled = true")
        if self.found.unset:
            self.remarks.append(f"not set at the moment: {', '.join(self.found.unset)}")
        for reference in dict.fromkeys(self.found.left):
            self.remarks.append(f"nothing stands for {reference} behind the gateway: write the value out")
        ignored = [key for key, value in self.entry.items() if key not in READ | OF_THE_HOST and value]
        if self.entry.get("timeout") is not None and self.host.timeout_seconds is None:
            ignored.append("timeout")
        if ignored:
            self.remarks.append(f"not carried over: {', '.join(ignored)}")


def _literal(text: str) -> str:
    return text.replace("${", "$${")


def _spelled(value: Any) -> Any:
    """Convert numbers and booleans to text for a command line or environment."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _says_login(value: Any) -> bool:
    """Whether an entry's key is present and not switched off: an empty table means automatic discovery."""
    return value is not None and value is not False


def _positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _strings(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if is_list(value) else []
