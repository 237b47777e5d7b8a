"""Golden cases cut to budgets in tokens: `tests/golden_budgets/<case>.md`, written by `pytest --update-golden`.

The cases are those of `tests/golden`, so that a change of what is cut, scaled or named is seen where it is reviewed.
Each output is that of a profile and a budget, with what it costs by the profile's first formula.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.config.builtin_profiles import counting_formulas
from gateway.core.model.effects import Outcome
from gateway.core.profiles.profile import Profile
from gateway.core.results.decisions import TokenBudget, decide
from gateway.core.results.lift_result import lift
from gateway.core.results.lower_mcp import lower
from gateway.core.results.rescue import rescue
from gateway.core.tokens import content_of_result, count_content
from tests.core import golden_cases
from tests.core.test_golden import PROFILES, expanded, perform, shortened

FOLDER = Path(__file__).parents[1] / "golden_budgets"
CASES = ("long_text", "mixed", "pdf", "sound_and_video", "structured_and_image", "twelve_megapixels")
NAMES = ("claude-code", "claude-desktop", "codex", "default", "gemini-cli", "passthrough", "text-only")
"""A profile for each way of treating a result."""
BUDGETS = (150, 1_000)


def cut(result: Any, profile: Profile, most: int) -> str:
    envelope = lift(expanded(result))
    envelope = rescue(envelope) if profile.rescue else envelope
    budget = TokenBudget(most, counting_formulas(profile.tokens.formulas))
    outcomes: dict[str, Outcome] = {}
    while wanted := decide(envelope, profile, outcomes, (), budget).wanted:
        outcomes |= {key: perform(effect) for key, effect in wanted.items()}
    decisions = decide(envelope, profile, outcomes, (), budget)
    lowered = lower(envelope, profile, decisions)
    content = content_of_result(lowered.result, profile.structured.host, decisions.lengths)
    tokens = count_content(content, budget.formulas[0]).total
    notes = [f"{note.kind}: {note.text}" for note in lowered.notes]
    written = {**shortened(lowered.result), "gateway notes": notes, "tokens": tokens}
    return json.dumps(written, ensure_ascii=False, indent=2) + "\n"


def outputs(result: Any) -> dict[str, str]:
    return {f"{name} at {most:,}": cut(result, PROFILES[name], most) for name in NAMES for most in BUDGETS}


@pytest.mark.parametrize("name", CASES)
def test_each_case_is_cut_to_its_budget_as_written_down(name: str, request: pytest.FixtureRequest) -> None:
    case = golden_cases.read(name)
    now = case._replace(outputs=outputs(case.result))
    path = golden_cases.path_of(name, FOLDER)
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(str(now), "utf-8", newline="\n")
    elif wrong := list(golden_cases.differences(golden_cases.read(name, FOLDER), now)):
        pytest.fail("\n".join(["not what the golden file says:", *wrong]), pytrace=False)
    assert path.read_text("utf-8") == str(now), "its outputs are right, but not as --update-golden writes them"
