"""Translating variables in a host's configuration: not every host writes `${NAME}` as mcp-gateway.toml does.

A reference that a host replaces by an environment variable becomes `${NAME:-default}`, so that an unset variable
affects one upstream's value rather than the start of the gateway. What a host takes literally is escaped (`$${`).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gateway.core.model.json_values import is_list, is_object

Dialect = Literal[
    "none",
    "claude-code",
    "gemini-cli",
    "opencode",
    "cursor",
    "vscode",
    "windsurf",
    "cline",
    "hermes",
    "openclaw",
    "crush",
    "copilot-cli",
    "kiro",
    "roo",
    "any",
]
"""The syntaxes of references. Sources:

none: Claude Desktop, Codex, Zed and LM Studio replace nothing.
claude-code: `${VAR}`, `${VAR:-default}` (https://code.claude.com/docs/en/mcp).
gemini-cli: `$VAR`, `${VAR}`; kept as they stand where unset (packages/cli/src/utils/envVarResolver.ts).
opencode: `{env:VAR}`, `{file:path}` (https://opencode.ai/docs/config).
cursor: `${env:VAR}`, `${userHome}`, `${workspaceFolder}`, `${pathSeparator}`, `${/}` (https://cursor.com/docs/context/mcp).
vscode: the same, and `${input:id}`, which is asked for
    (https://code.visualstudio.com/docs/copilot/reference/mcp-configuration).
windsurf: `${env:VAR}`, `${file:path}` (https://docs.windsurf.com/windsurf/cascade/mcp).
cline: `${env:VAR}` (src/utils/envExpansion.ts).
hermes: `${VAR}`, `${env:VAR}`, and Cursor's other variables
    (https://hermes-agent.nousresearch.com/docs/reference/mcp-config-reference).
openclaw: `${VAR}` in capitals (https://docs.openclaw.ai/gateway/configuration).
crush: as in Bash, `$VAR`, `${VAR}`, `${VAR:-default}`, `$(command)`, in every value (internal/config/config.go).
copilot-cli: `$VAR`, `${VAR}`, `${VAR:-default}` (https://github.com/github/copilot-cli/issues/903).
kiro: `${VAR}` (https://kiro.dev/docs/mcp/configuration).
roo: `${env:VAR}`, `${workspaceFolder}` (src/services/mcp/McpHub.ts, src/utils/config.ts).
any: a file of no known host: `${VAR}`, `${VAR:-default}`, `${env:VAR}`, as the gateway reads JSON files itself.
"""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BRACES = re.compile(r"\$\{([^{}]*)\}")
_PATTERNS: Mapping[str, re.Pattern[str]] = {
    "claude-code": re.compile(r"\$\{([^}]+)\}"),
    "any": re.compile(r"\$\{([^}]+)\}"),
    "gemini-cli": re.compile(r"\$(?:(\w+)|\{([^}]+)\})", re.ASCII),
    "copilot-cli": re.compile(r"\$(?:(\w+)|\{([^}]+)\})", re.ASCII),
    "crush": re.compile(r"\$(?:(\w+)|\{([^}]+)\}|\([^)]*\))", re.ASCII),
    "opencode": re.compile(r"\{((?:env|file):[^}]+)\}"),
}
_DOLLAR = "${MCP_GATEWAY_DOLLAR:-$}"
"""A dollar sign before a reference: `$${` would be an escape."""


@dataclass(frozen=True)
class Place:
    """The place of the configuration: the meaning of `${userHome}` and similar variables."""

    home: str
    separator: str
    environ: Mapping[str, str]
    project: str | None = None


@dataclass
class FoundVariable:
    """Findings: variables that are not set, values that a host asks for, references left as they are."""

    unset: list[str] = field(default_factory=list[str])
    asked: list[str] = field(default_factory=list[str])
    left: list[str] = field(default_factory=list[str])


@dataclass(frozen=True)
class _Variable:
    name: str
    default: str


def translate_variables(value: Any, dialect: Dialect, place: Place, found: FoundVariable) -> Any:
    """Translate every text in the value to our spelling; `found` collects what the user has to know."""
    if isinstance(value, str):
        return _text(value, dialect, place, found)
    if is_object(value):
        return {key: translate_variables(item, dialect, place, found) for key, item in value.items()}
    if is_list(value):
        return [translate_variables(item, dialect, place, found) for item in value]
    return value


def variable(name: str, place: Place, found: FoundVariable, default: str = "") -> str:
    """Return a reference to an environment variable, in our spelling."""
    if not default and name not in {*place.environ, *found.unset, *found.asked}:
        found.unset.append(name)
    return f"${{{name}:-{default}}}"


def _text(text: str, dialect: Dialect, place: Place, found: FoundVariable) -> str:
    if dialect == "none":
        return _escaped(text)
    meaning = _MEANINGS[dialect]
    parts: list[str | _Variable] = []
    position = 0
    for reference in _PATTERNS.get(dialect, _BRACES).finditer(text):
        meant = _without_inner(meaning(reference, place, found), place)
        _add(parts, text[position : reference.start()])
        if isinstance(meant, _Variable):
            parts.append(meant)
        else:
            _add(parts, reference[0] if meant is None else meant)
        position = reference.end()
    _add(parts, text[position:])
    return _joined(parts, place, found)


def _without_inner(meant: "Meaning", place: Place) -> "Meaning":
    """Return the same where a default has a reference inside, which ours cannot: the one that counts here, alone."""
    if not isinstance(meant, _Variable) or "${" not in meant.default:
        return meant
    return _Variable(meant.name, "") if place.environ.get(meant.name) else meant.default


def _add(parts: list[str | _Variable], text: str) -> None:
    """Append a text, joined with a preceding one: an escape may span both."""
    if parts and isinstance(last := parts[-1], str):
        parts[-1] = last + text
    else:
        parts.append(text)


def _joined(parts: list[str | _Variable], place: Place, found: FoundVariable) -> str:
    joined = ""
    for part, following in zip(parts, [*parts[1:], ""], strict=True):
        if isinstance(part, _Variable):
            joined += variable(part.name, place, found, part.default)
        elif isinstance(following, _Variable):
            plain = part.rstrip("$")
            joined += _escaped(plain) + _DOLLAR * (len(part) - len(plain))
        else:
            joined += _escaped(part)
    return joined


def _escaped(text: str) -> str:
    return text.replace("${", "$${")


Meaning = str | _Variable | None
"""A text in place of the reference, a variable, or None: the reference is literal."""


def _with_default(reference: re.Match[str], place: Place, found: FoundVariable) -> Meaning:
    name, _, default = reference[1].partition(":-")
    return _Variable(name, default) if _NAME.fullmatch(name) else None


def _any(reference: re.Match[str], place: Place, found: FoundVariable) -> Meaning:
    name, _, default = reference[1].removeprefix("env:").partition(":-")
    return _Variable(name, default) if _NAME.fullmatch(name) else None


def _gemini(reference: re.Match[str], place: Place, found: FoundVariable) -> Meaning:
    if reference[1] is not None:
        return _Variable(reference[1], reference[0]) if _NAME.fullmatch(reference[1]) else None
    name, _, default = reference[2].partition(":-")
    return _Variable(name, default) if _NAME.fullmatch(name) else None


def _in_shell(reference: re.Match[str], place: Place, found: FoundVariable) -> Meaning:
    if reference[1] is None and reference[2] is None:  # the output of a command
        found.left.append(reference[0])
        return None
    name, _, default = (reference[1] or reference[2]).partition(":-")
    return _Variable(name, default) if _NAME.fullmatch(name) else None


def _named(pattern: re.Pattern[str]) -> Callable[[re.Match[str], Place, FoundVariable], Meaning]:
    return lambda reference, place, found: _Variable(reference[1], "") if pattern.fullmatch(reference[1]) else None


def _hermes(reference: re.Match[str], place: Place, found: FoundVariable) -> Meaning:
    if reference[1] in _IN_EDITORS or ":" in reference[1]:
        return _prefixed(reference[1], _IN_EDITORS, place, found, reference[0])
    return _Variable(reference[1], "") if _NAME.fullmatch(reference[1]) else None


def _opencode(reference: re.Match[str], place: Place, found: FoundVariable) -> Meaning:
    return _prefixed(reference[1], frozenset({"env", "file"}), place, found, reference[0])


def _editor(kinds: frozenset[str]) -> Callable[[re.Match[str], Place, FoundVariable], Meaning]:
    return lambda reference, place, found: _prefixed(reference[1], kinds, place, found, reference[0])


def _prefixed(body: str, kinds: frozenset[str], place: Place, found: FoundVariable, whole: str) -> Meaning:
    kind, _, argument = body.partition(":")
    if kind not in kinds:
        return None
    name = argument.strip()
    if kind == "env" and _NAME.fullmatch(name):
        return _Variable(name, "")
    if kind == "input" and name:
        return _asked(name, place, found)
    plain = {
        "userHome": place.home,
        "pathSeparator": place.separator,
        "/": place.separator,
        "workspaceFolder": place.project,
        "workspaceFolderBasename": place.project and re.split(r"[\\/]", place.project.rstrip("\\/"))[-1],
    }
    if (text := plain.get(kind)) is not None:
        return text
    found.left.append(whole)
    return None


def _asked(identifier: str, place: Place, found: FoundVariable) -> _Variable:
    """Return a variable for a value that a host asks its user for: it has to come from the environment."""
    name = re.sub(r"[^A-Z0-9_]", "_", identifier.upper())
    name = name if _NAME.fullmatch(name) else f"INPUT_{name}"
    if name not in place.environ and name not in found.asked:
        found.asked.append(name)
    return _Variable(name, "")


_IN_EDITORS = frozenset({"env", "userHome", "pathSeparator", "/", "workspaceFolder", "workspaceFolderBasename"})
_MEANINGS: Mapping[str, Callable[[re.Match[str], Place, FoundVariable], Meaning]] = {
    "claude-code": _with_default,
    "any": _any,
    "gemini-cli": _gemini,
    "opencode": _opencode,
    "cursor": _editor(_IN_EDITORS),
    "vscode": _editor(_IN_EDITORS | {"input", "command", "config"}),
    "windsurf": _editor(frozenset({"env", "file"})),
    "cline": _editor(frozenset({"env"})),
    "hermes": _hermes,
    "openclaw": _named(re.compile(r"[A-Z_][A-Z0-9_]*")),
    "crush": _in_shell,
    "copilot-cli": _in_shell,
    "kiro": _named(_NAME),
    "roo": _editor(frozenset({"env", "workspaceFolder"})),
}
