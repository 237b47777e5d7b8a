"""Explain why a program ended or is silent by its output: in words, and as the facts that a remedy needs."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.core.fact_words import counted
from gateway.errors import FailureCode
from gateway.upstream.transports.installer_output import AbsentPackage
from gateway.upstream.transports.redaction import Secrets

_MODULE = re.compile(r"No module named '([\w.]+)'")
_VARIABLE = re.compile(r"\b(?!ERR_)[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")
"""A name that looks like an environment variable in the last line: it is probably missing. Node.js uses ERR_..."""
_LOOKED_AT = 500
"""Characters at the beginning of a line in which an address is looked for."""

_SERVES_HTTP = re.compile(
    r"\b(?:listen(?:s|ing)|run(?:s|ning)|serv(?:es|ing)|started|available|ready)\b"
    r".{0,120}?\bhttps?://(?:localhost|127\.|0\.0\.0\.0|\[::1?\])"
    r"|\blistening (?:on|at) (?:port ?|:)\d",
    re.IGNORECASE,
)
"""A program that says at which address of this machine it serves. It may still answer on stdio as well."""


def serves_http(line: str) -> bool:
    """Whether a line says that the program serves HTTP on this machine."""
    return _SERVES_HTTP.search(line[:_LOOKED_AT]) is not None


@dataclass(frozen=True)
class Hint:
    """The output of a program that may explain its end or its silence: for display, and as a failure, if known."""

    text: str
    code: FailureCode | None = None
    details: Mapping[str, str] = field(default_factory=dict[str, str])


def read_printed(
    last_line: str | None,
    others: int,
    first_other: str,
    secrets: Secrets,
    absent: AbsentPackage | None = None,
    serving: str | None = None,
) -> Hint | None:
    """Return a hint made from the most meaningful line of stderr and the number of lines on stdout that are not MCP.

    `absent` is a package that an installer did not find: nothing else explains more. `serving` is a line on either of
    them which says that the program serves HTTP. Return None if nothing was printed.
    """
    if absent is not None:
        details = {"package": secrets.cause(absent.name, 200)} if absent.name else {}
        return Hint(secrets.cause(absent.line), FailureCode.PACKAGE_NOT_FOUND, details)
    last_line = secrets.cause(last_line) if last_line is not None else None
    if not others:
        hint = None if last_line is None else _read_line(last_line)
        return hint if hint is None or serving is None else _of_a_web_server(hint, secrets.cause(serving))
    first = secrets.cause(first_other, 120)
    text = f"it printed {counted(others, 'line')} that {'are' if others > 1 else 'is'} not MCP, first {first!r}"
    details = {"serves": "HTTP"} if "http://" in first_other or serving is not None else {}
    return Hint(text if last_line is None else f"{last_line}; {text}", FailureCode.NOT_MCP_ON_STDOUT, details)


def _read_line(line: str) -> Hint:
    if module := _MODULE.search(line):
        return Hint(line, FailureCode.MODULE_MISSING, {"module": module[1]})
    if variable := _VARIABLE.search(line):
        return Hint(line, FailureCode.VARIABLE_MISSING, {"variable": variable[0]})
    return Hint(line)


def _of_a_web_server(hint: Hint, serving: str) -> Hint:
    """Add the address that a program named on stderr, unless its last line is known to say what it lacks."""
    if hint.code is not None:
        return hint
    text = hint.text if serving in hint.text else f"{serving}; {hint.text}"
    return Hint(text, details={"serves": "HTTP"})
