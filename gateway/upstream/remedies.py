"""Remedies for failures of upstreams: one table, from the failure's code to a command or an edit. Pure.

A remedy has two wordings. The brief one accompanies the failure wherever it is shown: in the answer to a host's call,
`status`, `tools`, the log. The full one is for `doctor`, whose reader wants to fix the failure: it names the key in
the configuration, or the command to run.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import NamedTuple

from gateway.config.logins import login_command, sends_credentials
from gateway.config.upstream_settings import UpstreamSettings
from gateway.errors import Failure, FailureCode

_INSTALLERS = {
    "npx": "install Node.js",
    "node": "install Node.js",
    "npm": "install Node.js",
    "uvx": "install uv",
    "uv": "install uv",
    "docker": "install Docker",
    "bunx": "install Bun",
    "deno": "install Deno",
    "python": "use python3, or the gateway's own: ${MCP_GATEWAY_PYTHON}",
}
"""How to install programs that are often used as commands."""

_WANTS_STDIO = "it serves HTTP: give it its option for stdio, often --stdio"


@dataclass(frozen=True)
class FailedUpstream:
    """An upstream with a failure: its name, its settings, and the details of the failure.

    `command_line` is its command with the arguments, fit to be shown, if it is known.
    """

    name: str
    settings: UpstreamSettings
    details: Mapping[str, str]
    command_line: str | None = None
    login_command: str | None = None
    """The command that logs in to it, if it is not the plain one."""

    def key(self, name: str) -> str:
        """Return the full name of one of its settings in the configuration file."""
        return f"upstreams.{self.name}.{name}"

    @property
    def url_key(self) -> str:
        """The full name of the setting that has its address."""
        return self.key("url" if self.settings.openapi is None else "base_url")

    @property
    def program(self) -> str:
        """The command, without its arguments, which may contain secrets."""
        return self.settings.command or ""

    @property
    def by_hand(self) -> str:
        """Instructions to start it without the gateway."""
        folder = f" in {self.settings.cwd}" if self.settings.cwd is not None else ""
        if self.command_line is not None:
            return f"run `{self.command_line}` by hand{folder}"
        arguments = " with its args" if self.settings.args else ""
        return f"run {self.program}{arguments} by hand{folder}"

    @property
    def login(self) -> str:
        """The command that logs in to it."""
        return self.login_command or login_command(self.name)


Text = str | Callable[[FailedUpstream], str | None]
"""In a string, `{upstream}` is the table in the configuration (`upstreams.charts`), `{url}` the key of its address,
`{program}` the command, and `{name}` its name.
"""


class Remedy(NamedTuple):
    """The remedy for one kind of failure; without a full wording, the brief one is used everywhere."""

    brief: Text | None = None
    full: Text | None = None


def brief_remedy(code: FailureCode, upstream: FailedUpstream) -> str | None:
    """Return the brief remedy for a failure; None if only the upstream's own message can help."""
    return _worded(REMEDIES.get(code, Remedy()).brief, upstream)


def full_remedy(
    failure: Failure | None,
    name: str,
    settings: UpstreamSettings,
    command_line: str | None = None,
    *,
    login: str | None = None,
) -> str:
    """Return the full remedy for a failure; its own remedy if the table has nothing more precise.

    `command_line` is the upstream's, and `login` the command that logs in to it, with the options that it needs here.
    """
    upstream = FailedUpstream(name, settings, failure.details if failure is not None else {}, command_line, login)
    if failure is not None:
        full = _worded(REMEDIES.get(failure.code, Remedy()).full, upstream) or failure.remedy
        if full:
            return full
    return f"{upstream.by_hand}, and see" if upstream.program else f"check {upstream.url_key}"


def _worded(text: Text | None, upstream: FailedUpstream) -> str | None:
    if isinstance(text, str):
        named = {"name": upstream.name, "program": upstream.program, "url": upstream.url_key}
        return text.format(upstream=f"upstreams.{upstream.name}", **named)
    return text(upstream) if text is not None else None


def _missing_command(upstream: FailedUpstream) -> str:
    program = PurePath(upstream.program).name
    if PurePath(upstream.program).is_absolute() or "/" in upstream.program:
        return f"fix the path in {upstream.key('command')}"
    install = _INSTALLERS.get(program, f"install {program}")
    return f"{install}, or set {upstream.key('command')} to its absolute path (`which {program}` shows it)"


def _missing_folder(upstream: FailedUpstream) -> str:
    return f"mkdir -p {upstream.settings.cwd}, or change {upstream.key('cwd')}"


def _check_package(upstream: FailedUpstream) -> str:
    return f"check the name of the package{_named(upstream)}, and its version"


def _missing_package(upstream: FailedUpstream) -> str:
    return f"check the name of the package{_named(upstream)}, and its version, in {upstream.key('args')}"


def _named(upstream: FailedUpstream) -> str:
    package = upstream.details.get("package")
    return f" {package!r}" if package else ""


def _missing_module(upstream: FailedUpstream) -> str:
    install = f"install {upstream.details['module']} for {upstream.program}"
    return f"{install}, or set {upstream.key('command')} to the Python that has it"


def _missing_variable(upstream: FailedUpstream) -> str:
    name = upstream.details["variable"]
    missing = f'{name} seems to be missing: {upstream.key("env")} = {{ {name} = "${{{name}}}" }}'
    return f"{missing}, since few of your environment variables reach it; else {upstream.by_hand}"


def _exited(upstream: FailedUpstream) -> str:
    return (
        f"{upstream.by_hand} to see all that it says; it gets few of your environment variables: "
        f"what it needs goes into {upstream.key('env')}"
    )


def _if_not_stdio(upstream: FailedUpstream) -> str | None:
    """Return the remedy for a program that is silent; the detail `serves` tells that it named an address."""
    return _WANTS_STDIO if "serves" in upstream.details else _if_slow(upstream)


def _prints_other_things(upstream: FailedUpstream) -> str:
    return (
        f"{upstream.by_hand}: its stdout may carry MCP and nothing else (logs belong on stderr); "
        f"some servers need an argument as --stdio in {upstream.key('args')}"
    )


def _if_slow(upstream: FailedUpstream) -> str | None:
    """Return the remedy for a start that took too long; the detail `limit` is the key of the limit that it reached."""
    limit = upstream.details.get("limit")
    return f"raise {limit} if it is only slow" if limit else None


def _start_timeout(upstream: FailedUpstream) -> str:
    if "serves" in upstream.details:
        return f"{_WANTS_STDIO}, in {upstream.key('args')}; or give the gateway its url"
    look = f"{upstream.by_hand} and see whether it answers" if upstream.program else f"check {upstream.url_key}"
    return f"{look}; if it is only slow, {upstream.key('timeout')} = {{ start = 120 }}"


def _unauthorized_in_brief(upstream: FailedUpstream) -> str:
    wants = upstream.details.get("wants")
    if sends_credentials(upstream.settings.headers):
        renew = "get a new token for headers"
        return f"{renew}; or, without one, {upstream.login}" if wants == "login" else renew
    if wants == "login":
        return upstream.login
    set_header = 'set a token: headers = { Authorization = "Bearer ..." }'
    return f"{set_header}; or {upstream.login}" if wants == "token" else set_header


def _unauthorized(upstream: FailedUpstream) -> str:
    wants = upstream.details.get("wants")
    if sends_credentials(upstream.settings.headers):
        renew = f"the token in {upstream.key('headers')} is not accepted: get a new one"
        return f"{renew}, or remove it and log in: {upstream.login}" if wants == "login" else renew
    if wants == "login":
        return upstream.login
    set_header = f'set {upstream.key("headers")} = {{ Authorization = "Bearer ${{TOKEN}}" }}, and the variable TOKEN'
    return f"{set_header}; or log in: {upstream.login}" if wants == "token" else set_header


def _other_requests(upstream: FailedUpstream) -> str:
    path = f"check the path of {upstream.url_key}"
    if upstream.settings.transport == "auto":  # both kinds of requests have been tried
        return f"{path}: most servers have /mcp or /sse"
    return f'{path}, and set {upstream.key("transport")} = "auto"'


def _not_accepted(upstream: FailedUpstream) -> str:
    return "check the path of the url" + ("" if upstream.settings.transport == "auto" else ", and transport")


def _log_in(upstream: FailedUpstream) -> str:
    return upstream.login


def _check_document(upstream: FailedUpstream) -> str:
    return upstream.details.get("remedy") or f"check {upstream.key('openapi')}"


_CHECK_URL = "check that the server runs, and the url"

REMEDIES: Mapping[FailureCode, Remedy] = {
    # Starting a program.
    FailureCode.COMMAND_NOT_FOUND: Remedy("install it, check PATH, or give its absolute path", _missing_command),
    FailureCode.INTERPRETER_NOT_FOUND: Remedy(
        "install it, check PATH, or give its absolute path", "fix the #! line of {program}"
    ),
    FailureCode.FOLDER_NOT_FOUND: Remedy("make it, or change cwd", _missing_folder),
    FailureCode.NOT_A_FOLDER: Remedy("check command and cwd", "check {upstream}.command and {upstream}.cwd"),
    FailureCode.NOT_EXECUTABLE: Remedy("make it executable, and check who owns it", "chmod +x {program}"),
    FailureCode.NOT_A_PROGRAM: Remedy(
        "begin the script with a #! line, or start its interpreter as the command",
        "begin {program} with a #! line, or make its interpreter {upstream}.command",
    ),
    # A program that was started.
    FailureCode.START_TIMEOUT: Remedy(_if_not_stdio, _start_timeout),
    FailureCode.EXITED: Remedy(full=_exited),
    FailureCode.PACKAGE_NOT_FOUND: Remedy(_check_package, _missing_package),
    FailureCode.MODULE_MISSING: Remedy(full=_missing_module),
    FailureCode.VARIABLE_MISSING: Remedy(full=_missing_variable),
    FailureCode.NOT_MCP_ON_STDOUT: Remedy(_if_not_stdio, _prints_other_things),
    FailureCode.MEMORY_EXCEEDED: Remedy(
        "the next call starts it again: ask it for less at once, or raise limits.memory"
    ),
    # Reaching an address.
    FailureCode.INVALID_URL: Remedy("check the url"),
    FailureCode.HOST_NOT_FOUND: Remedy(
        "check the url, the name service, and whether this machine is online",
        "is this machine online? If it is, fix the host in {url}",
    ),
    FailureCode.CONNECTION_REFUSED: Remedy(_CHECK_URL, "start the server, or fix host and port in {url}"),
    FailureCode.NO_CONNECTION: Remedy(_CHECK_URL),
    FailureCode.CONNECT_TIMEOUT: Remedy(_CHECK_URL),
    FailureCode.PROXY_REFUSED: Remedy("check HTTP_PROXY and NO_PROXY"),
    FailureCode.CERTIFICATE_REJECTED: Remedy(
        "if its certificate is from your own authority, set SSL_CERT_FILE",
        "set SSL_CERT_FILE to the certificate of your own authority, or have the server's renewed",
    ),
    FailureCode.TLS_FAILED: Remedy(
        "check whether the url should begin with http:// or https://",
        "begin {url} with http:// in place of https://, if the server speaks plain HTTP",
    ),
    FailureCode.INVALID_HEADERS: Remedy("check the values in headers", "check the values in {upstream}.headers"),
    # Its answer over HTTP.
    FailureCode.UNAUTHORIZED: Remedy(_unauthorized_in_brief, _unauthorized),
    FailureCode.LOGIN_REQUIRED: Remedy(_log_in),
    FailureCode.LOGIN_FAILED: Remedy(_log_in, "check {upstream}.auth, and log in again"),
    FailureCode.FORBIDDEN: Remedy(
        "check the token in headers, and what it may do",
        "check the token in {upstream}.headers, and what it may do",
    ),
    FailureCode.NOT_FOUND: Remedy(
        "check the path of the url",
        "fix the path of {url}: most servers have /mcp or /sse",
    ),
    FailureCode.METHOD_NOT_ALLOWED: Remedy(_not_accepted, _other_requests),
    FailureCode.REQUEST_REFUSED: Remedy(full=_other_requests),
    FailureCode.PROXY_UNAUTHORIZED: Remedy("check HTTP_PROXY and HTTPS_PROXY"),
    FailureCode.OWN_UPSTREAM: Remedy("take it out of the configuration", "mcp-gateway remove {name}"),
    FailureCode.TOO_MANY_REQUESTS: Remedy("wait, or ask its operator for a higher limit"),
    FailureCode.NOT_AN_EVENT_STREAM: Remedy("check the url", _other_requests),
    # The document of an HTTP API.
    FailureCode.DOCUMENT_UNUSABLE: Remedy(_check_document),
    # The protocol, over any transport.
    FailureCode.MESSAGE_TOO_LARGE: Remedy("raise max_message_bytes if this is expected"),
    FailureCode.BUSY: Remedy("try again in a moment; limits.queue is how many calls may wait"),
    FailureCode.TOO_MUCH_WAITING: Remedy("it is started again; report this to the developers of the server"),
    # Caused by the gateway itself.
    FailureCode.RECONFIGURED: Remedy("try again"),
    FailureCode.ASLEEP: Remedy("the next call wakes it up"),
}
"""Remedies by code. A failure whose code is missing here cannot be fixed on the gateway's side."""

ANOTHER_REQUEST_MAY_DO = frozenset(
    {
        FailureCode.NOT_FOUND,
        FailureCode.METHOD_NOT_ALLOWED,
        FailureCode.REQUEST_REFUSED,
        FailureCode.NOT_AN_EVENT_STREAM,
    }
)
"""Failures at an address that exists and accepts this caller: another transport or path may be the right one."""
