"""Images of tools that a model's chat template refuses where they stand: other places for them, remembered by model.

Servers of open models (llama-server, vLLM ...) take any message, and the model's chat template decides what becomes of
it. So the place for images can be known of a model only, and a refusal by its server is the surest sign.
"""

import re
from collections import OrderedDict

from gateway.core.profiles.model_profile import ImagePlace, ModelProfile
from gateway.core.profiles.model_profiles import leaves_choice, with_tool_images

_PLACES: tuple[ImagePlace, ...] = ("in_tool", "follow_up", "after_reply")

REFUSING = frozenset({400, 422, 500})
"""The statuses with which servers refuse what their template refuses."""

MOST_BYTES = 256 * 1024
"""A refusal is no longer than this."""

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
    """Whether an answer says that images of tools may not stand at this place."""
    if status not in REFUSING or place == "none":
        return False
    return (_IN_TOOL if place == "in_tool" else _ORDER).search(text) is not None


def other_places(place: ImagePlace) -> list[ImagePlace]:
    """The places to try when this one is refused, the best first."""
    return [other for other in _PLACES if other != place]


def place_words(place: ImagePlace, *, to: bool = False) -> str:
    """The place in words: where images are, or `to` where they go."""
    if place == "in_tool":
        return f"{'into' if to else 'in'} the tool messages"
    return f"after the tool messages{', behind a reply of the assistant' if place == 'after_reply' else ''}"


class KnownPlaces:
    """Where each model's server took the images of tools after it had refused them: of the latest `most` models."""

    def __init__(self, most: int = 256) -> None:
        self._most = most
        self._places: OrderedDict[tuple[str, str | None], ImagePlace] = OrderedDict()

    def remember(self, dialect: str, model: str | None, place: ImagePlace) -> None:
        """From now on, they go there."""
        self._places[dialect, model] = place
        self._places.move_to_end((dialect, model))
        if len(self._places) > self._most:
            self._places.popitem(last=False)

    def applied(self, dialect: str, model: str | None, profile: ModelProfile) -> ModelProfile:
        """The profile with what was found out of the model."""
        place = self._places.get((dialect, model))
        return profile if place is None or not leaves_choice(profile) else with_tool_images(profile, place)
