"""The media that a model accepts, and where: decide which pieces of a request can stay unchanged."""

from typing import Any

from gateway.core.model import media_types
from gateway.core.model.blocks import AudioBlock, Block, ImageBlock, ResourceBlock
from gateway.core.model.json_values import is_dict, is_list
from gateway.core.model_apis.requests.found_results import Piece
from gateway.core.profiles.model_profile import ImagePlace, ModelProfile, ModelText

_IMAGE_PARTS = frozenset({"image", "image_url", "input_image"})
_DEEPEST = 60
_GEMINI_IMAGES = ("inlineData", "inline_data")


def is_right(piece: Piece, profile: ModelProfile) -> bool:
    """Whether a piece can stay unchanged: in the API's own form, in a place that it allows, within its limits."""
    envelope = piece.call.envelope
    if not piece.native or envelope.notes or (envelope.is_error and profile.error.text_only):
        return False
    if piece.by_reference:
        return place_of("image", profile) == "in_tool"
    return all(_is_taken(block, profile) for block in envelope.blocks)


def place_of(kind: str, profile: ModelProfile) -> ImagePlace:
    """Return where media of a kind goes for this model."""
    if kind == "image":
        return profile.image.place if profile.vision else "none"
    return {"audio": profile.audio, "video": profile.video}.get(kind, profile.document).place


def in_user_message(profile: ModelProfile) -> ModelProfile:
    """Return the profile for a user message: media that the model accepts anywhere stays in place, text is not cut."""
    kinds = {"image": profile.image, "audio": profile.audio, "document": profile.document, "video": profile.video}
    types = (*profile.image.types, *profile.image.follow_up_types)
    update: dict[str, Any] = {
        name: rules.model_copy(update={"place": "in_tool"}) for name, rules in kinds.items() if rules.place != "none"
    }
    if "image" in update:
        update["image"] = update["image"].model_copy(update={"types": types, "follow_up_types": ()})
    return profile.model_copy(update={**update, "text": ModelText()})


def shows(media_type: str, profile: ModelProfile) -> bool:
    """Whether the model gets content of this type as media. True for images of every type, as they are converted."""
    kind = media_kind(media_type)
    if place_of(kind, profile) == "none":
        return False
    if kind == "image":
        return True
    return media_type in {"audio": profile.audio, "video": profile.video}.get(kind, profile.document).types


def media_kind(media_type: str | None) -> str:
    """Return `image`, `audio`, `video` or `document`."""
    family = media_types.family(media_type)
    return family if family in ("image", "audio", "video") else "document"


def images_in(request: Any, depth: int = 0) -> int:
    """Return the number of images in a whole request that are in the API's own form."""
    if is_list(request):
        return sum(images_in(item, depth + 1) for item in request) if depth < _DEEPEST else 0
    if not is_dict(request) or depth > _DEEPEST:
        return 0
    kind = request.get("type")
    if (isinstance(kind, str) and kind in _IMAGE_PARTS) or any(key in request for key in _GEMINI_IMAGES):
        return 1
    return sum(images_in(value, depth + 1) for value in request.values())


def _is_taken(block: Block, profile: ModelProfile) -> bool:
    if not isinstance(block, ImageBlock | AudioBlock | ResourceBlock):
        return True
    found = block.found
    if found is None or place_of(kind := media_kind(found.media_type), profile) != "in_tool":
        return False
    if kind != "image":
        return True
    rules = profile.image
    if found.media_type not in rules.types or (rules.max_bytes is not None and found.byte_size > rules.max_bytes):
        return False
    return rules.max_edge is None or (found.pixels is not None and max(found.pixels) <= rules.max_edge)
