"""The tokens that results cost the model behind a host, for the log, the metrics, the console and callers' limits."""

from collections.abc import Mapping
from typing import Any

from anyio import to_thread

from gateway.config.builtin_profiles import counting_formulas
from gateway.core.model.json_size import Size
from gateway.core.model.json_values import as_list, objects_in
from gateway.core.profiles.profile import Profile
from gateway.core.tokens import Content, Lengths, TokenCount, TokenFormula, content_of_result, count_content

_LARGE = 256 * 1024
"""The size of a result above which it is counted in a thread."""
_REMEMBERED = 512


class TokenCounts:
    """Counts results by the formulas of the hosts' models. `model` is that behind all hosts, if it is configured."""

    def __init__(self, model: str | None) -> None:
        self._model = model
        self._known: dict[tuple[tuple[str, ...], str | None], tuple[TokenFormula, ...]] = {}

    def formulas(self, profile: Profile, model: str | None) -> tuple[TokenFormula, ...]:
        """Return the formulas for a host of this profile, whose model is `model` if it is known: the likeliest first.

        Where nothing is known of the host, they are those for unknown hosts.
        """
        key = profile.tokens.formulas, self._model or model
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _REMEMBERED:  # hosts name their models themselves
                self._known.clear()
            found = self._known[key] = counting_formulas(*key)
        return found

    async def count(
        self, result: Mapping[str, Any], size: Size, profile: Profile, model: str | None, lengths: Lengths
    ) -> tuple[TokenCount, str]:
        """Return what a shaped result costs by the likeliest formula, and the formula's name.

        `lengths` are those known of its media.
        """
        formula = self.formulas(profile, model)[0]
        structured = profile.structured.host
        if size.total <= _LARGE:
            return count_content(content_of_result(result, structured, lengths), formula), formula.name
        content = await to_thread.run_sync(content_of_result, result, structured, lengths)
        return await to_thread.run_sync(count_content, content, formula), formula.name

    def picture_tokens(self, result: Mapping[str, Any], profile: Profile, model: str | None) -> int:
        """Return what the images of a result of any kind cost by the formula that counts most.

        Images of unknown size count as nothing.
        """
        media = [medium for medium in content_of_result(_without_texts(result)).media if medium.kind == "image"]
        if not media:
            return 0
        content = Content(media=media)
        return max(count_content(content, formula).images for formula in self.formulas(profile, model))


def _without_texts(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result, of tools, resources or prompts, as a CallToolResult with its media alone."""
    blocks: list[Any] = []
    for block in objects_in(as_list(result.get("content"))):
        blocks += [block] if block.get("type") in _WITH_BYTES else []
    blocks += [{"type": "resource", "resource": each} for each in objects_in(as_list(result.get("contents")))]
    for message in objects_in(as_list(result.get("messages"))):
        blocks += objects_in([message.get("content")])
    return {"content": blocks}


_WITH_BYTES = frozenset({"image", "resource"})
