"""From the cause that an upstream gives for not being there to the command or the edit that mends it. Pure."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath

from gateway.config.logins import login_command, sends_credentials
from gateway.config.schema import UpstreamSettings

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
"""What brings a program that is often named as a command."""


@dataclass(frozen=True)
class Symptom:
    """An upstream that is not there: its name, its settings, and the cause in words."""

    name: str
    settings: UpstreamSettings
    words: str

    def key(self, name: str) -> str:
        """A key of its settings, as it is written in the file."""
        return f"upstreams.{self.name}.{name}"

    @property
    def program(self) -> str:
        """The command; never its arguments, which may hold secrets."""
        return self.settings.command or ""

    @property
    def by_hand(self) -> str:
        """How to start it without the gateway."""
        arguments = " with its args" if self.settings.args else ""
        folder = f" in {self.settings.cwd}" if self.settings.cwd is not None else ""
        return f"run {self.program}{arguments} by hand{folder}"


def split_cause(cause: str) -> tuple[str, str | None]:
    """Words and remedy of `words (remedy)`; the parenthesis that ends the cause is the remedy."""
    if not cause.endswith(")"):
        return cause, None
    depth = 0
    for place in range(len(cause) - 1, 0, -1):
        depth += {")": 1, "(": -1}.get(cause[place], 0)
        if depth == 0:
            words = cause[:place].rstrip()
            return (words, cause[place + 1 : -1]) if words and cause[place - 1] == " " else (cause, None)
    return cause, None


def cured(name: str, settings: UpstreamSettings, cause: str) -> tuple[str, str]:
    """What is wrong with an upstream, and what mends it: the cause's own remedy where nothing more telling is known."""
    for pattern, cure in _CURES:
        if re.search(pattern, cause):
            words, remedy = split_cause(cause)
            # What a program printed may end in a parenthesis of its own.
            return (words if remedy and _is_ours(remedy) else cause), cure(Symptom(name, settings, cause))
    words, remedy = split_cause(cause)
    if remedy:
        return words, remedy
    case = Symptom(name, settings, cause)
    return cause, f"{case.by_hand}, and see" if case.program else f"check {case.key('url')}"


def _is_ours(remedy: str) -> bool:
    return re.match(r"(?:install|make|begin|check|set|raise|wait|if|see|get|mcp-remote)\b", remedy) is not None


def _missing(case: Symptom) -> str:
    program = PurePath(case.program).name
    if PurePath(case.program).is_absolute() or "/" in case.program:
        return f"mend the path in {case.key('command')}"
    install = _INSTALLERS.get(program, f"install {program}")
    return f"{install}, or set {case.key('command')} to its absolute path (`which {program}` tells it)"


def _exited(case: Symptom) -> str:
    if module := re.search(r"No module named '([\w.]+)'", case.words):
        return f"install {module[1]} for {case.program}, or set {case.key('command')} to the Python that has it"
    if variable := re.search(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b", case.words):
        missing = f'{variable[0]} seems to be missing: {case.key("env")} = {{ {variable[0]} = "${{{variable[0]}}}" }}'
        return f"{missing}, since few of your environment variables reach it; else {case.by_hand}"
    return (
        f"{case.by_hand} to see all that it says; it gets few of your environment variables: "
        f"what it needs goes into {case.key('env')}"
    )


def _unauthorised(case: Symptom) -> str:
    login = login_command(case.name, case.settings.url or "URL", replace=True)
    token = f'set {case.key("headers")} = {{ Authorization = "Bearer ${{TOKEN}}" }}, and the variable TOKEN'
    if sends_credentials(case.settings.headers):
        cure = f"the token in {case.key('headers')} is not accepted: get a new one"
        return f"{cure}, or let mcp-remote log in: {login}" if "mcp-remote" in case.words else cure
    if "wants a login" in case.words:
        return f"{login} (mcp-remote logs in, in your browser)"
    return f"{token}; or let mcp-remote log in: {login}" if "mcp-remote" in case.words else token


def _insecure(case: Symptom) -> str:
    if re.search(r"certificate|self.signed|hostname", case.words, re.IGNORECASE):
        return "set SSL_CERT_FILE to the certificate of your own authority, or have the server's renewed"
    return f"begin {case.key('url')} with http:// in place of https://, if the server speaks plain HTTP"


_CURES: tuple[tuple[str, Callable[[Symptom], str]], ...] = (
    (r"^the command '.*' was not found", _missing),
    (r"interpreter that .* names in its first line", lambda case: f"mend the #! line of {case.program}"),
    (r"\(cwd\) does not exist", lambda case: f"mkdir -p {case.settings.cwd}, or change {case.key('cwd')}"),
    (r" may not be run", lambda case: f"chmod +x {case.program}"),
    (
        r"is not a program that this system can run",
        lambda case: f"begin {case.program} with a #! line, or make its interpreter {case.key('command')}",
    ),
    (r"is not a folder", lambda case: f"check {case.key('command')} and {case.key('cwd')}"),
    (
        r"printed \d+ lines? that (?:is|are) not MCP",
        lambda case: (
            f"{case.by_hand}: its stdout may carry MCP and nothing else (logs belong on stderr); "
            f"some servers need an argument as --stdio in {case.key('args')}"
        ),
    ),
    (r"^(?:exited|was ended|closed its output|ended)", _exited),
    (
        r"^was not ready within",
        lambda case: (
            (f"{case.by_hand} and see whether it answers" if case.program else f"check {case.key('url')}")
            + f"; if it is only slow, {case.key('timeout')} = {{ start = 120 }}"
        ),
    ),
    (r"connection refused by", lambda case: f"start the server, or mend host and port in {case.key('url')}"),
    (r"host name of .* was not found", lambda case: f"mend the host in {case.key('url')}"),
    (r"HTTP 401", _unauthorised),
    (r"HTTP 403", lambda case: f"check the token in {case.key('headers')}, and what it may do"),
    (r"HTTP 404", lambda case: f"mend the path of {case.key('url')}: most servers have /mcp or /sse"),
    (
        r"HTTP 4(?:00|05|06|15|22)|no event stream",
        lambda case: f'check the path of {case.key("url")}, and set {case.key("transport")} = "auto"',
    ),
    (r"no secure connection", _insecure),
    (r"a request cannot be written", lambda case: f"check the values in {case.key('headers')}"),
)
"""Patterns of causes, the most telling first, and the cure of each."""
