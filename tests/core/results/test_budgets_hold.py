"""A result never costs more than its budget, whatever the gateway writes: every golden case, every profile."""

from typing import Any

import pytest

from gateway.config.builtin_profiles import builtin_profiles, counting_formulas
from gateway.core.model.effects import Effect, Keep, Kept, Outcome
from gateway.core.model.json_size import compact_json
from gateway.core.profiles.profile import ContentUrlRules, Profile
from gateway.core.results.decisions import TokenBudget, decide
from gateway.core.results.decisions.fit_tokens import LEAST_BUDGET
from gateway.core.results.lift_result import lift
from gateway.core.results.lower_mcp import lower
from gateway.core.results.rescue import rescue
from gateway.core.tokens import Lengths, TokenFormula, content_of_result, count_content, text_tokens
from tests.core import golden_cases
from tests.core.test_golden import expanded, perform

PROFILES = builtin_profiles()
_RULES = {
    *("text", "image", "audio", "document", "blob", "embedded_text", "link", "structured", "error", "unknown"),
    *("order", "handles", "limits", "audience", "rescue", "tokens"),
}
"""What of a profile decides about a result."""
DIFFERENT = {
    f"{profile.model_dump_json(include=_RULES)}{profile.tools.helpers}": profile for profile in PROFILES.values()
}.values()
CASES = {name: golden_cases.read(name).result for name in golden_cases.NAMES}
ROUNDS = 16
_LINK = "https://gateway.example/content/" + "q8Zr4TkP0sLw" * 8


def everything() -> dict[str, Any]:
    """All golden cases as one result."""
    return {
        "content": [
            block
            for name, case in CASES.items()
            if name != "long_text"
            for block in case.get("content", ())
            if isinstance(block, dict)
        ]
    }


def many(number: int, block: dict[str, Any]) -> dict[str, Any]:
    return {"content": [block] * number}


_IMAGE = {"type": "image", "data": "@png:640x480", "mimeType": "image/png"}
_NAMED = {"type": "resource", "resource": {"uri": f"file:///{'long-name/' * 30}a.png", "blob": "@png:640x480"}}
_LINKED = {"type": "resource_link", "uri": f"x://{'y' * 300}", "name": "link", "description": "about it " * 30}
_TEXT = {"type": "resource", "resource": {"uri": "file:///log.txt", "text": "@lines:9000"}}
_SOUND = {"type": "audio", "data": "@wav:4000", "mimeType": "audio/wav"}
CASES |= {
    "everything": everything(),
    "everything_failed": {"content": everything()["content"][::3], "isError": True},
    "many_images": many(24, _IMAGE),
    "named_images": many(8, _NAMED),
    "links": many(20, _LINKED),
    "embedded_texts": many(3, _TEXT),
    "sounds": many(30, _SOUND),
    "new_kinds": many(20, {"type": "hologram", "depth": "deep " * 50}),
    "large_and_structured": {"content": [{"type": "text", "text": "@lines:20000"}], "structuredContent": {"a": 1}},
}


def answer(effect: Effect, *, linked: bool) -> Outcome:
    return Kept("img_7h3k2m9q4w8x", f"{_LINK}{effect.key}") if isinstance(effect, Keep) and linked else perform(effect)


def shaped(result: Any, profile: Profile, most: int, *, linked: bool = False) -> tuple[dict[str, Any], Lengths]:
    envelope = lift(expanded(result))
    envelope = rescue(envelope) if profile.rescue else envelope
    budget, outcomes = TokenBudget(most, formulas(profile)), dict[str, Outcome]()
    for _ in range(ROUNDS):
        decisions = decide(envelope, profile, outcomes, ("image", "audio"), budget)
        if not decisions.wanted:
            return lower(envelope, profile, decisions).result, decisions.lengths
        outcomes |= {key: answer(effect, linked=linked) for key, effect in decisions.wanted.items()}
    raise AssertionError("it never settles")


def formulas(profile: Profile) -> tuple[TokenFormula, ...]:
    return counting_formulas(profile.tokens.formulas)


def cost(result: dict[str, Any], profile: Profile, lengths: Lengths) -> int:
    content = content_of_result(result, profile.structured.host, lengths)
    return max(count_content(content, formula).total for formula in formulas(profile))


def allowed(result: dict[str, Any], most: int) -> int:
    """The budget; a result with structured content, which is never cut, may cost that and one line."""
    structured = text_tokens(compact_json(result["structuredContent"])) if "structuredContent" in result else 0
    return max(most, structured + LEAST_BUDGET)


def test_links_to_the_content_count_too() -> None:
    linked = PROFILES["claude-code"].model_copy(update={"content_url": ContentUrlRules(show="beside")})
    for most in (400, 1_500):
        for name in ("everything", "many_images", "long_text"):
            result, lengths = shaped(CASES[name], linked, most, linked=True)
            assert cost(result, linked, lengths) <= most
            assert _LINK in compact_json(result)


@pytest.mark.parametrize("name", CASES)
def test_no_result_costs_more_than_its_budget(name: str) -> None:
    over: dict[tuple[str, int], tuple[int, int]] = {}
    for profile in DIFFERENT:
        for most in (LEAST_BUDGET, 700):
            result, lengths = shaped(CASES[name], profile, most)
            if (tokens := cost(result, profile, lengths)) > (most_allowed := allowed(result, most)):
                over[profile.name, most] = tokens, most_allowed
    assert not over
