"""Whether a client leaves out the media that the gateway's captions stand before."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from gateway.core.model.api_media import media_near
from gateway.core.model_apis.requests.found_results import Piece
from gateway.core.model_apis.requests.gateway_lines import CAPTION, handles_in
from gateway.core.model_apis.requests.result_formats import has_media


def drops_media(request: Mapping[str, Any], pieces: Sequence[Piece]) -> bool:
    """Whether there are captions, and none of them has media near it: up to the assistant's next message.

    A client that shows the media of one caption shows media; where others have none, it has left that out by intent.
    """
    captioned = [piece for piece in pieces if handles_in(piece.call.envelope, CAPTION)]
    if not captioned:
        return False
    messages: Any = request.get(str(captioned[0].where[0]))
    if not isinstance(messages, list):
        return True  # all of the input is one string
    showing = {_index(piece) for piece in pieces if has_media(piece.call.envelope)}
    shown = media_near(cast("list[Any]", messages), showing)
    return not any(shown[_index(piece)] for piece in captioned)


def _index(piece: Piece) -> int:
    place = piece.into or piece.where
    return cast("int", place[1]) if len(place) > 1 else 0
