"""What large JSON costs: as the server sent it, as each host is sent it, and what a query for the part needed adds."""

import json
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

import jmespath

from benchmarks.tokens.store import same_handles
from gateway.cli.command_context import open_shaper
from gateway.config.builtin_profiles import builtin_profiles
from gateway.config.schema import Settings
from gateway.content.media.query_json import as_table, query_json
from gateway.core.model.caller import Caller
from gateway.core.model.revisions import NEWEST_HANDSHAKE
from gateway.core.profiles.host_profiles import narrow
from gateway.core.tokens.estimate_text import text_tokens

HOSTS = ("claude-code", "cursor", "codex", "gemini-cli", "vscode-copilot", "default")
_WORDS = (
    *("add", "retry", "cache", "login", "stream", "image", "cursor", "upload"),
    *("windows", "timeout", "crash", "token", "session", "proxy", "report"),
)
"""It is another in each run, and so is the number of its tokens."""
_PLACES = ("Lisbon", "Oslo", "Quito", "Nairobi", "Osaka")


class Kind(NamedTuple):
    """A kind of large JSON, and the query that a model asks for what it needs of it."""

    title: str
    value: Any
    query: str


class Row(NamedTuple):
    """Tokens of one kind of JSON: whole, sent to each host, and of the answer to its query as JSON and as given."""

    title: str
    whole: int
    hosts: Mapping[str, int]
    found_json: int
    found: int
    is_table: bool


def kinds() -> list[Kind]:
    """Return the same JSON every time: what trackers, databases, monitoring and configuration answer."""
    random = Random(1)  # noqa: S311 (the same JSON every time is what it is for)
    issues = [
        {
            "id": 90_000 + number,
            "number": number,
            "title": " ".join(random.sample(_WORDS, 5)),
            "state": random.choice(("open", "closed")),
            "user": {"login": f"user{number % 17}", "id": number % 17, "url": f"https://example.com/u/{number % 17}"},
            "labels": [{"name": name, "color": "d73a4a"} for name in random.sample(_WORDS, 2)],
            "comments": random.randrange(40),
            "body": " ".join(random.choices(_WORDS, k=120)),
            "created_at": f"2026-{1 + number % 12:02}-{1 + number % 28:02}T08:00:00Z",
        }
        for number in range(200)
    ]
    orders = {
        "rows": [
            {"order": number, "city": random.choice(_PLACES), "amount": round(random.uniform(5, 500), 2), "paid": True}
            for number in range(3_000)
        ],
        "next": None,
    }
    series = [
        {"metric": name, "points": [[1_790_000_000 + 60 * at, round(random.random(), 4)] for at in range(720)]}
        for name in _WORDS[:5]
    ]
    services = {
        f"service-{number}": {
            "image": f"registry.example/{_WORDS[number % 15]}:{number}",
            "replicas": number % 5,
            "env": {word.upper(): str(random.randrange(1000)) for word in _WORDS},
        }
        for number in range(150)
    }
    return [
        Kind("200 issues of a tracker", issues, "[?comments > `35`].{number: number, title: title, state: state}"),
        Kind("3,000 rows of a database", orders, "rows[?city == 'Oslo' && amount > `480`]"),
        Kind("5 series of 720 points", series, "[].{metric: metric, last: points[-1] | [1], most: max(points[*][1])}"),
        Kind("150 services of a cluster", services, "values(@)[?replicas == `4`].{image: image, replicas: replicas}"),
    ]


async def measure() -> list[Row]:
    """Return a row for each kind."""
    profiles = {name: narrow(builtin_profiles()[name], NEWEST_HANDSHAKE) for name in HOSTS}
    rows: list[Row] = []
    async with open_shaper(Settings(), same_handles()) as shaper:
        for kind in kinds():
            text = json.dumps(kind.value)
            result = {"content": [{"type": "text", "text": text}]}
            sent: dict[str, int] = {}
            for name, profile in profiles.items():
                shaped = await shaper.shape(result, profile, owner=Caller().principal)
                sent[name] = text_tokens(_texts(shaped.result))
            rows.append(_row(kind, text, sent))
    return rows


def _texts(result: Mapping[str, Any]) -> str:
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")


def _row(kind: Kind, text: str, sent: Mapping[str, int]) -> Row:
    answer = query_json(text.encode(), kind.query, max_chars=1_000_000)
    found = jmespath.search(kind.query, kind.value)
    written = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    return Row(
        kind.title, text_tokens(text), sent, text_tokens(written), text_tokens(answer), answer == as_table(found)
    )


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of the table."""
    titles = [builtin_profiles()[name].title or name for name in HOSTS]
    yield "| | whole | " + " | ".join(titles) + " | what a query finds |"
    yield "|---|--:|" + "--:|" * (len(HOSTS) + 1)
    for row in rows:
        found = f"{row.found:,} as a table ({row.found_json:,} as JSON)" if row.is_table else f"{row.found:,}"
        sent = " | ".join(f"{row.hosts[name]:,}" for name in HOSTS)
        yield f"| {row.title} | {row.whole:,} | {sent} | {found} |"
