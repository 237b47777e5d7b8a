"""Other places for images in tool results if a model's chat template refuses them, remembered by model.

Servers of open models (llama-server, vLLM ...) accept any message, and the model's chat template decides how it is
rendered. So the right place for images depends on the model, and a refusal by its server is the surest sign.
"""

import re
from collections import OrderedDict

from gateway.core.profiles.model_profile import ImagePlace, ModelProfile
from gateway.core.profiles.model_profiles import leaves_choice, with_tool_images

_PLACES: tuple[ImagePlace, ...] = ("in_tool", "follow_up", "after_reply")

REFUSING = frozenset({400, 422, 500})
"""HTTP statuses with which servers report that a chat template refused a request."""

MOST_BYTES = 256 * 1024
"""Maximum size of a refusal."""

# "conversation roles must alternate user and assistant roles ...": chat templates of Mistral, Gemma and others, in
# llama-server (https://github.com/anomalyco/opencode/issues/5034) and vLLM (https://github.com/vllm-project/vllm/issues/6862).
# "Unexpected role 'user' after role 'tool'": mistral-common up to 1.11.0, in vLLM and in Mistral's own API
# (https://github.com/mistralai/mistral-common/issues/169).
_ORDER = re.compile(r"roles must alternate|unexpected role .{0,3}user.{0,3} after role .{0,3}tool", re.IGNORECASE)

_IN_TOOL = re.compile(
    # https://github.com/All-Hands-AI/OpenHands/issues/7700
    r"only allowed for messages with role .{0,3}user"
    # mistral-common 1.13.1, and up to 1.11.0
    r"|content chunk types in tool message|validation errors? for ToolMessage"
    # The template wrote no placeholder: vLLM (https://github.com/vllm-project/vllm/issues/30963) and llama-server
    # (https://github.com/ggml-org/llama.cpp/issues/22490).
    r"|failed to apply prompt replacement|failed to tokenize prompt"
    # Kimi's template in vLLM (https://github.com/vllm-project/vllm/issues/43203), and others of its kind
    r"|tool messages?(?: contents?)? only supports? text|in tool messages? contents?",
    re.IGNORECASE,
)


def is_refused(status: int, text: str, place: ImagePlace) -> bool:
    """Whether an answer says that images in tool results are not allowed in this place."""
    if status not in REFUSING or place == "none":
        return False
    return (_IN_TOOL if place == "in_tool" else _ORDER).search(text) is not None


def other_places(place: ImagePlace) -> list[ImagePlace]:
    """The places to try if this one is refused, best first."""
    return [other for other in _PLACES if other != place]


def place_words(place: ImagePlace, *, to: bool = False) -> str:
    """Describe the place: where images are, or where they are moved (`to`)."""
    if place == "in_tool":
        return f"{'into' if to else 'in'} the tool messages"
    return f"after the tool messages{', behind a reply of the assistant' if place == 'after_reply' else ''}"


class KnownPlaces:
    """The places where model servers accepted images in tool results after a refusal, for the latest `most` models."""

    def __init__(self, most: int = 256) -> None:
        self._most = most
        self._places: OrderedDict[tuple[str, str | None], ImagePlace] = OrderedDict()

    def remember(self, dialect: str, model: str | None, place: ImagePlace) -> None:
        """Use this place for the model from now on."""
        self._places[dialect, model] = place
        self._places.move_to_end((dialect, model))
        if len(self._places) > self._most:
            self._places.popitem(last=False)

    def applied(self, dialect: str, model: str | None, profile: ModelProfile) -> ModelProfile:
        """Return the profile with the place found for the model."""
        place = self._places.get((dialect, model))
        return profile if place is None or not leaves_choice(profile) else with_tool_images(profile, place)
