"""What a result costs each model of a host, in tokens: as its upstream gave it, and as the host is sent it."""

from typing import Any, NamedTuple

from gateway.config.builtin_profiles import token_formulas
from gateway.content.shaping.shaper import Shaped
from gateway.core.apps.results import is_for_a_file
from gateway.core.profiles.profile import Profile
from gateway.core.tokens import (
    TokenCount,
    content_of_blocks,
    content_of_result,
    count_content,
    formulas_for,
    with_structured,
)


class ResultCost(NamedTuple):
    """What a result costs by one formula: as the upstream gave it, and as the host is sent it."""

    formula: str
    title: str
    given: TokenCount
    sent: TokenCount


def result_costs(shaped: Shaped, profile: Profile, model: str | None) -> list[ResultCost]:
    """Return the costs by each formula of the host's models; empty if nothing is known of them.

    Structured content counts where this host's model reads it, of what was given as of what is sent; not if the host
    writes it to a file.
    """
    blocks = content_of_blocks(shaped.envelope.blocks, lengths=shaped.lengths)
    data, result = shaped.envelope.structured_content, shaped.result
    if "structuredContent" in result and is_for_a_file(profile, result["structuredContent"]):
        nothing: dict[str, Any] = {}
        data, result = nothing, {**result, "structuredContent": nothing}
    given = with_structured(blocks, data, profile.structured.host)
    sent = content_of_result(result, profile.structured.host, shaped.lengths)
    return [
        ResultCost(formula.name, formula.title, count_content(given, formula), count_content(sent, formula))
        for formula in formulas_for(token_formulas(), profile.tokens.formulas, model)
    ]
