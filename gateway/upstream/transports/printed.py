"""Explain why a program ended or is silent by its output: in words, and as the facts that a remedy needs."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.core.wording import counted
from gateway.errors import FailureCode
from gateway.upstream.transports.installer_output import AbsentPackage
from gateway.upstream.transports.redaction import Secrets

_MODULE = re.compile(r"No module named '([\w.]+)'")
_VARIABLE = re.compile(r"\b(?!ERR_)[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")
"""A name that looks like an environment variable in the last line: it is probably missing. Node.js uses ERR_..."""


@dataclass(frozen=True)
class Hint:
    """The output of a program that may explain its end or its silence: for display, and as a failure, if known."""

    text: str
    code: FailureCode | None = None
    details: Mapping[str, str] = field(default_factory=dict[str, str])


def read_printed(
    last_line: str | None, others: int, first_other: str, secrets: Secrets, absent: AbsentPackage | None = None
) -> Hint | None:
    """Return a hint made from the most meaningful line of stderr and the number of lines on stdout that are not MCP.

    `absent` is a package that an installer did not find: nothing else explains more. Return None if nothing was
    printed.
    """
    if absent is not None:
        details = {"package": secrets.cause(absent.name, 200)} if absent.name else {}
        return Hint(secrets.cause(absent.line), FailureCode.PACKAGE_NOT_FOUND, details)
    last_line = secrets.cause(last_line) if last_line is not None else None
    if not others:
        return None if last_line is None else _read_line(last_line)
    first = secrets.cause(first_other, 120)
    text = f"it printed {counted(others, 'line')} that {'are' if others > 1 else 'is'} not MCP, first {first!r}"
    details = {"serves": "HTTP"} if "http://" in first_other else {}
    return Hint(text if last_line is None else f"{last_line}; {text}", FailureCode.NOT_MCP_ON_STDOUT, details)


def _read_line(line: str) -> Hint:
    if module := _MODULE.search(line):
        return Hint(line, FailureCode.MODULE_MISSING, {"module": module[1]})
    if variable := _VARIABLE.search(line):
        return Hint(line, FailureCode.VARIABLE_MISSING, {"variable": variable[0]})
    return Hint(line)
