"""Pages and JSON of the console: each view is both, at `/console/...` and at `/console/api/...`."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, select_autoescape
from starlette.responses import HTMLResponse, Response

from gateway._version import __version__
from gateway.core.fact_words import age_words, counted, size_words
from gateway.telemetry.sanitize import neutral

PAGE_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; "
        "connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    # Not `no-referrer`: browsers would then send `Origin: null` with the form for a token.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


_ADDRESS = re.compile(r"""(https?://[^\s<>"'()\[\]{}|\\^`]++)""")


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("gateway.serving.console"),
        autoescape=select_autoescape(default=True),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {
        "clean": neutral,
        "size": size_words,
        "duration": duration,
        "age": age_words,
        "addresses": addresses,
    }
    names: dict[str, Any] = {"version": __version__, "counted": counted, "bars": bars}
    environment.filters.update(filters)  # pyright: ignore[reportUnknownMemberType]
    environment.globals.update(names)  # pyright: ignore[reportUnknownMemberType]
    return environment


def page(template: str, values: Mapping[str, Any], status: int = 200) -> Response:
    """Return the response with a page, or a part of one."""
    return HTMLResponse(_templates().get_template(template).render(values), status, PAGE_HEADERS)


def fragment(template: str, values: Mapping[str, Any]) -> str:
    """Return a part of a page as HTML in one line, as events need it."""
    return " ".join(_templates().get_template(template).render(values).split("\n"))


def as_json(value: Any, status: int = 200) -> Response:
    """Return the response with JSON."""
    return Response(json.dumps(value, default=str), status, PAGE_HEADERS, "application/json")


def duration(milliseconds: int) -> str:
    """Format a duration: `34 ms`, `1.2 s`, `2.1 min`."""
    if milliseconds < 1_000:
        return f"{milliseconds} ms"
    if milliseconds < 100_000:
        return f"{milliseconds / 1_000:.1f} s"
    return f"{milliseconds / 60_000:.1f} min".replace(".0 ", " ")


def bars(counts: Sequence[int], failed: Sequence[int], height: int) -> list[dict[str, int]]:
    """Return the bars of a chart of `height`: each with its place `x`, the height of all and of the `failed` ones."""
    most = max(1, *counts)
    return [
        {"x": place, "all": -(-count * height // most), "failed": -(-bad * height // most)}
        for place, (count, bad) in enumerate(zip(counts, failed, strict=True))
    ]


def addresses(text: str) -> list[tuple[str, bool]]:
    """Return a text in pieces, each with whether it is an address of the web."""
    pieces = _ADDRESS.split(text)
    return [(piece, place % 2 == 1) for place, piece in enumerate(pieces) if piece]
