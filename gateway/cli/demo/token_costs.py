"""What the results of the demo cost the models behind each host, in tokens: as they reach it, on each side."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from gateway.cli.demo.outcome import Outcome
from gateway.config.builtin_profiles import builtin_profiles, counting_formulas
from gateway.core.model.media_types import PixelSize
from gateway.core.profiles.match_profile import choose_profile
from gateway.core.tokens import Content, Medium, TokenCount, TokenFormula, count_content, medium_in, text_tokens
from gateway.hosts.simulators.host import SimulatedHost
from gateway.hosts.simulators.seen import Seen, SeenAudio, SeenDocument, SeenImage, SeenText
from gateway.hosts.simulators.side import Side


class CostOfAll(NamedTuple):
    """What a host's model pays for all results that reach it on both sides. `model` is the formula's title."""

    host: SimulatedHost
    model: str
    direct: int
    through: int
    results: int


def token_costs(side: Side, host: SimulatedHost) -> Sequence[tuple[str, TokenCount]]:
    """Return what one side of a cell costs each model of the host, by its title; empty if nothing reaches a model."""
    if side.seen is None or side.seen.error or host.for_people:
        return ()
    content = _content(side.seen)
    text = sum(map(text_tokens, content.texts))
    media = Content(media=content.media)
    return [(formula.title, replace(count_content(media, formula), text=text)) for formula in _formulas(host)]


def costs_of_all(outcome: Outcome) -> Sequence[CostOfAll]:
    """Return what each host's models pay for all results that reach the model on both sides."""
    found: list[CostOfAll] = []
    for host in outcome.hosts:
        cells = [cell for cell in outcome.cells if cell.host is host]
        pairs = [(token_costs(cell.direct, host), token_costs(cell.through, host)) for cell in cells]
        both = [pair for pair in pairs if pair[0] and pair[1]]
        for place, formula in enumerate(_formulas(host)):
            direct, through = (sum(pair[side][place][1].total for pair in both) for side in (0, 1))
            found.append(CostOfAll(host, formula.title, direct, through, len(both)))
    return found


def costs_json(outcome: Outcome) -> list[dict[str, Any]]:
    """Return the same as JSON for programs."""
    return [
        {"host": cost.host.name, "model": cost.model, "direct": cost.direct, "through": cost.through}
        for cost in costs_of_all(outcome)
    ]


def _formulas(host: SimulatedHost) -> tuple[TokenFormula, ...]:
    """Return the formulas of the models of the profile that the gateway serves this host with."""
    return counting_formulas(choose_profile(builtin_profiles(), host.caller, None).profile.tokens.formulas)


def _content(seen: Seen) -> Content:
    texts: list[str] = []
    media: list[Medium] = []
    for part in seen.parts:
        match part:
            case SeenText():
                texts.append(part.text)
            case SeenImage():
                media.append(Medium("image", PixelSize(*part.pixels) if part.pixels else None))
            case SeenAudio() | SeenDocument():
                media.append(medium_in(part.data))
    return Content(texts, media)
