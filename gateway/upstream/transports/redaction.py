"""Sanitize text from outside for messages: remove escapes, hide secrets, limit the length."""

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from gateway.config.secrets import hide, longest_first, upstream_secrets
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.fact_words import plain

_ESCAPE_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
"""Terminal control sequences: CSI (colours, cursor), OSC (titles, links) and the two-character ones."""

_SHORTEST_SECRET = 4

_LONGEST_MESSAGE = 20
"""Lines of what was thrown above its stack: more than the first one, if they say what had required a module."""

_NOISE = re.compile(
    r"""^(?: Node\.js\ v\d            # what node prints after every uncaught error
          |  \s+at\s                  # frames of a JavaScript stack
          |  [\s\]\[{}()^,;~-]*$      # brackets and carets left over from a printed object
          |  \s+\w+:\s.*[,\[{]?$      # fields of a printed error object
          |  \s+'[^']*',?$           # texts in a list among them
          |  npm\ (?:error|ERR!)\ (?:A\ complete\ log|404\ Note\ that|404\ tarball|(?:404)?\s*$)
        )""",
    re.VERBOSE,
)
"""Lines that end the stderr of a failed program without saying why it failed."""


def printable(text: str, longest: int = 300) -> str:
    """Return `text` on one line, without terminal sequences or control characters, cut to `longest` characters."""
    return plain(_ESCAPE_SEQUENCE.sub("", text[: 20 * longest]), longest)


def last_meaningful_line(lines: Sequence[str]) -> str | None:
    """Return the line of a program's stderr that best says why it ended; None if there is none."""
    spoken = [line for line in lines if line.strip()]
    if (thrown := _thrown(spoken)) is not None:
        return thrown
    for line in reversed(spoken):
        if not _NOISE.match(line):
            return line
    return spoken[-1] if spoken else None


def _thrown(lines: Sequence[str]) -> str | None:
    """Return the first line of what was thrown, if that ends with a JavaScript stack and nothing else is said later."""
    last = next((index for index in reversed(range(len(lines))) if not _NOISE.match(lines[index])), None)
    if last is None or last + 1 == len(lines) or not lines[last + 1].lstrip().startswith("at "):
        return None
    above = reversed(lines[max(0, last + 1 - _LONGEST_MESSAGE) : last + 1])
    return next((line for line in above if _is_message(line)), None)


def _is_message(line: str) -> bool:
    """Whether a line begins with what kind of error it is: `TypeError: ...`, `Error [ERR_X]: ...`."""
    kind = line.partition(" ")[0].removesuffix(":")
    return kind.endswith(("Error", "Exception"))


def meaningful_lines(lines: Sequence[str], most: int) -> Sequence[str]:
    """Return the last lines of a program's stderr, at most `most`, without blank ones and frames of a stack."""
    return [line for line in lines if line.strip() and not _NOISE.match(line)][-most:]


class Secrets:
    """The secrets in an upstream's settings, never to be shown: header values, URL credentials, keys in env."""

    def __init__(self, settings: UpstreamSettings) -> None:
        self._values = longest_first(upstream_secrets(settings), _SHORTEST_SECRET)

    def hide(self, text: str) -> str:
        """Replace every secret in `text`."""
        return hide(text, self._values)

    def cause(self, text: str, longest: int = 300) -> str:
        """Return `text` for a message: with secrets hidden, and printable on one line."""
        return printable(self.hide(text), longest)


def origin_of(url: str) -> str:
    """Return `scheme://host:port` of a URL; messages may not show more of it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
