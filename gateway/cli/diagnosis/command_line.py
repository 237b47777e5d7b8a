"""The command of an upstream as it can be pasted into a shell, with its secrets hidden."""

import re
import shlex
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gateway.config.secrets import HIDDEN, SECRET_NAME
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.json_values import as_object, is_list
from gateway.upstream.transports.redaction import Secrets

_ASSIGNMENT = re.compile(r"([\w.-]+\s*[=:]\s*)(.+)", re.DOTALL)
"""`--token=x`, `API_KEY=x` or `Authorization: Bearer x`."""

_KNOWN_TOKEN = re.compile(r"(?:sk|gh[a-z]|github_pat|glpat|xox[a-z])[-_]\S{8,}")
"""A token with a known beginning."""

_TOKEN = re.compile(rf"{_KNOWN_TOKEN.pattern}|(?=\S*\d)[\w+/=-]{{32,}}")
"""What looks like a token by itself: with a known beginning, or long, with a digit and nothing that a path has."""

_LONGEST = 300


def command_line(name: str, settings: UpstreamSettings, path: Path | None) -> str | None:
    """Return the command of an upstream and its arguments; None if it has no command.

    Arguments are those written in the configuration at `path`: what a variable in them stands for may be a secret.
    """
    if settings.command is None:
        return None
    words = _hidden(_written(name, path, len(settings.args)))
    secrets = Secrets(settings)
    return " ".join([shlex.quote(settings.command), *(_quoted(secrets.cause(word, _LONGEST)) for word in words)])


def shell_line(words: Sequence[str]) -> str:
    """Return words that somebody has typed as they can be pasted into a shell, without secrets that are named so."""
    return " ".join(map(_quoted, _hidden(words, _KNOWN_TOKEN)))


def _written(name: str, path: Path | None, count: int) -> Sequence[str]:
    """Return the arguments as they are written; hidden ones if the file does not have them in this form."""
    unknown = [HIDDEN] * count
    if path is None:
        return unknown
    try:
        upstreams = as_object(tomllib.loads(path.read_text("utf-8-sig")).get("upstreams"))
    except (OSError, ValueError):
        return unknown
    args: Any = as_object(upstreams.get(name)).get("args")
    return [str(one) for one in args] if is_list(args) and len(args) == count else unknown


def _hidden(words: Sequence[str], token: re.Pattern[str] = _TOKEN) -> Iterator[str]:
    """Hide what looks like a secret: the value of an option or assignment with such a name, a `token`, and in a URL."""
    after = False
    for word in words:
        assigned = _ASSIGNMENT.fullmatch(word)
        if after and not word.startswith("-"):
            yield HIDDEN
        elif "://" in word:
            parts = urlsplit(word)
            host = parts.netloc.rpartition("@")
            shown = parts._replace(netloc=f"{HIDDEN}@{host[2]}" if host[1] else host[2], fragment="")
            yield shown._replace(query=HIDDEN if parts.query else "").geturl()
        elif assigned and SECRET_NAME.search(assigned[1]):
            yield assigned[1] + HIDDEN
        else:
            yield token.sub(HIDDEN, word)
        after = word.startswith("-") and not assigned and bool(SECRET_NAME.search(word))


def _quoted(word: str) -> str:
    """Quote a word for the shell, which may replace variables in it."""
    return f'"{word}"' if re.fullmatch(r"[^\"`\\]*\$\{\w+\}[^\"`\\]*", word) and "$(" not in word else shlex.quote(word)
