"""What results cost each host's models, what the tools of each server cost in a list, and what budgets keep.

A text, a screenshot and a document of three pages are given to each host, as they are shaped for it.
"""

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from random import Random
from typing import Any, NamedTuple

from PIL import Image, ImageDraw

from benchmarks.tokens.store import same_handles
from benchmarks.tokens.tool_search import SET, catalogue_for
from gateway.cli.command_context import open_shaper
from gateway.config.builtin_profiles import builtin_profiles
from gateway.config.schema import Settings
from gateway.content.shaping.result_costs import ResultCost, result_costs
from gateway.content.shaping.shaper import Shaper
from gateway.core.model.caller import Caller
from gateway.core.model.revisions import NEWEST_HANDSHAKE
from gateway.core.profiles.host_profiles import narrow
from gateway.core.profiles.profile import Profile
from gateway.core.tokens import TokenCount, list_tokens, medium_in
from gateway.core.tools.catalogue import OWN

HOSTS = (
    *("claude-code", "claude-desktop", "cursor", "vscode-copilot", "codex", "chatgpt", "gemini-cli"),
    *("qwen-code", "default"),
)
BUDGETED = ("claude-code", "codex", "gemini-cli", "default")
BUDGETS = (None, 16_000, 8_000, 4_000, 2_000, 1_000, 300)
_CHARS = 40_000
_SCREEN = (1920, 1080)
_PAGE, _PAGES = (850, 1100), 3


class ModelRow(NamedTuple):
    """What a text, a screenshot and a document cost a model of a host: as they were given, and as they are sent."""

    host: str
    model: str
    costs: Sequence[ResultCost]


class ServerRow(NamedTuple):
    """What the tools of one server cost in a list: how many there are, all of them, and the dearest with its name."""

    server: str
    tools: int
    tokens: int
    most: int
    dearest: str


class Kept(NamedTuple):
    """What is left of a result for one host: tokens by its dearest model, characters of text, and sizes of images."""

    tokens: int
    chars: int
    images: Sequence[str]


class Figures(NamedTuple):
    """All of it. `kept` has what each of the `BUDGETS` keeps, for each of the hosts that are `BUDGETED`."""

    models: Sequence[ModelRow]
    servers: Sequence[ServerRow]
    kept: Mapping[int | None, Sequence[Kept]]


def _text() -> dict[str, Any]:
    """Return the same log every time."""
    random = Random(1)  # noqa: S311 (the same text every time is what it is for)
    lines: list[str] = []
    while sum(map(len, lines)) + len(lines) < _CHARS:
        at, level = len(lines), random.choice(("INFO", "INFO", "INFO", "WARNING", "ERROR"))
        task, seconds = random.choice(("sync", "index", "upload", "session")), random.random() * 9
        lines.append(f"2026-11-23 08:{at // 60 % 60:02}:{at % 60:02} {level} {task} of item {at} took {seconds:.3f} s")
    return {"type": "text", "text": "\n".join(lines)[:_CHARS]}


def _drawn(size: tuple[int, int], number: int) -> Image.Image:
    image = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(image)
    for row in range(20, size[1], 40):
        draw.rectangle((20, row, size[0] * (row % 7 + 2 + number) // 12, row + 12), fill=(30, 30 * number % 255, 90))
    return image


def _screenshot(number: int = 1) -> dict[str, Any]:
    written = BytesIO()
    _drawn(_SCREEN, number).save(written, "PNG")
    return {"type": "image", "mimeType": "image/png", "data": b64encode(written.getvalue()).decode()}


def _document() -> dict[str, Any]:
    written = BytesIO()
    first, *more = [_drawn(_PAGE, number + 1) for number in range(_PAGES)]
    first.save(written, "PDF", save_all=True, append_images=more)
    blob = b64encode(written.getvalue()).decode()
    return {"type": "resource", "resource": {"uri": "file:///a.pdf", "mimeType": "application/pdf", "blob": blob}}


async def measure() -> Figures:
    """Return all figures."""
    profiles = {name: narrow(builtin_profiles()[name], NEWEST_HANDSHAKE) for name in HOSTS}
    models: list[ModelRow] = []
    kept: dict[int | None, list[Kept]] = {}
    async with open_shaper(Settings(), same_handles()) as shaper:
        for profile in profiles.values():
            models += await _models(shaper, profile)
        result = {"content": [_text(), _screenshot(1), _screenshot(2)]}
        for budget in BUDGETS:
            kept[budget] = [await _kept(shaper, result, profiles[name], budget) for name in BUDGETED]
    return Figures(models, _servers(profiles["default"]), kept)


async def _models(shaper: Shaper, profile: Profile) -> list[ModelRow]:
    """Return a row for each model of a host."""
    found: list[list[ResultCost]] = []
    for block in (_text(), _screenshot(), _document()):
        shaped = await shaper.shape({"content": [block]}, profile, owner=Caller().principal)
        found.append(result_costs(shaped, profile, None))
    return [ModelRow(profile.title or profile.name, costs[0].title, costs) for costs in zip(*found, strict=True)]


def _servers(profile: Profile) -> list[ServerRow]:
    """Return a row for each server, with the names under which hosts of this profile are offered its tools."""
    catalogue = catalogue_for(profile, json.loads(SET.read_text("utf-8"))["tools"])
    lists: dict[str, list[Any]] = {}
    for tool in catalogue.tools:
        if (server := catalogue.routes[tool["name"]].upstream) != OWN:
            lists.setdefault(server, []).append(tool)
    rows: list[ServerRow] = []
    for server, tools in lists.items():
        most, dearest = max((list_tokens([tool]), tool["name"]) for tool in tools)
        rows.append(ServerRow(server, len(tools), list_tokens(tools), most, dearest))
    return sorted(rows, key=lambda row: -row.tokens)


async def _kept(shaper: Shaper, result: Mapping[str, Any], profile: Profile, budget: int | None) -> Kept:
    tokens = profile.tokens.model_copy(update={"max_result": budget})
    budgeted = profile.model_copy(update={"tokens": tokens})
    shaped = await shaper.shape(result, budgeted, owner=Caller().principal)
    log = next((block["text"] for block in shaped.result["content"] if "INFO" in str(block.get("text"))), "")
    chars = sum(len(line) + 1 for line in log.splitlines() if line[:1] != "[")
    sizes = [medium_in(block["data"]).pixels for block in shaped.result["content"] if block["type"] == "image"]
    images = [f"{size.width}x{size.height}" for size in sizes if size is not None]
    most = max(cost.sent.total for cost in result_costs(shaped, budgeted, None))
    return Kept(most, min(chars, _CHARS), images)


def model_table(rows: Sequence[ModelRow]) -> Iterator[str]:
    """Yield the lines of the table of what results cost."""
    yield f"| host | model | {_CHARS:,} characters | {_SCREEN[0]}x{_SCREEN[1]} | PDF, {_PAGES} pages |"
    yield "|---|---|--:|--:|--:|"
    for row in rows:
        yield f"| {row.host} | {row.model} | {' | '.join(_both(cost) for cost in row.costs)} |"


def server_table(rows: Sequence[ServerRow]) -> Iterator[str]:
    """Yield the lines of the table of lists."""
    yield "| server | tools | tokens | its dearest tool |"
    yield "|---|--:|--:|--:|"
    for row in rows:
        yield f"| {row.server} | {row.tools} | {row.tokens:,} | `{row.dearest}`: {row.most:,} |"
    yield f"| all | {sum(row.tools for row in rows)} | {sum(row.tokens for row in rows):,} | |"


def budget_table(kept: Mapping[int | None, Sequence[Kept]]) -> Iterator[str]:
    """Yield the lines of the table of what budgets keep."""
    titles = [builtin_profiles()[name].title or name for name in BUDGETED]
    yield "| budget | " + " | ".join(titles) + " |"
    yield "|--:|" + "---|" * len(titles)
    for budget, hosts in kept.items():
        yield f"| {'none' if budget is None else f'{budget:,}'} | {' | '.join(map(_left, hosts))} |"


def keeps_budgets(kept: Mapping[int | None, Sequence[Kept]]) -> bool:
    """Whether no result costs more than its budget."""
    return all(host.tokens <= budget for budget, hosts in kept.items() if budget is not None for host in hosts)


def _both(cost: ResultCost) -> str:
    given, sent = _number(cost.given), _number(cost.sent)
    return given if given == sent else f"{given} → {sent}"


def _number(count: TokenCount) -> str:
    return f"{count.total:,}" if count.is_whole else "unknown"


def _left(kept: Kept) -> str:
    sizes = dict.fromkeys(kept.images)
    images = ", ".join(f"{kept.images.count(size)} of {size}" for size in sizes) or "no image"
    return f"{kept.tokens:,}: {kept.chars:,} characters, {images}"
