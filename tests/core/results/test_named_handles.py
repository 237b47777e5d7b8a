"""Media that a host shows is kept and named too, where a tool takes content: so that the model can pass it on."""

import base64
from typing import Any

import pytest

from gateway.config.builtin_profiles import load_builtin
from gateway.core.model.effects import Failed, FitImage, Fitted, Keep, Kept, Outcome
from gateway.core.model.media_types import PixelSize
from gateway.core.model_apis.requests.find_lines import handles_in
from gateway.core.model_apis.requests.handles_in_text import handles_in_text
from gateway.core.profiles.host_profiles import resolve_profiles
from gateway.core.results.decisions import decide
from gateway.core.results.lift_result import lift
from gateway.core.results.lower_mcp import lower

PROFILES = resolve_profiles(load_builtin())


def png(width: int, height: int) -> str:
    header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + width.to_bytes(4, "big") + height.to_bytes(4, "big")
    return base64.b64encode(header + b"\0\0\0\0IEND\xaeB`\x82").decode()


IMAGE = {"type": "image", "data": png(40, 30), "mimeType": "image/png"}
LARGE = {"type": "image", "data": png(4000, 3000), "mimeType": "image/png"}
SOUND = {"type": "audio", "data": base64.b64encode(b"RIFF\0\0\0\0WAVEfmt ").decode(), "mimeType": "audio/wav"}


def shaped(profile: str, *content: Any, handles: str = "always", store_is_full: bool = False) -> list[Any]:
    """What a host is sent, with every effect answered: handles are numbered in the order of keeping."""
    chosen = PROFILES[profile].model_copy(update={"handles": handles})
    envelope, outcomes = lift({"content": list(content)}), dict[str, Outcome]()
    while effects := tuple(decide(envelope, chosen, outcomes).wanted.values()):
        for effect in effects:
            match effect:
                case Keep():
                    outcomes[effect.key] = Failed("full") if store_is_full else Kept(f"img_{len(outcomes):012}")
                case FitImage():
                    outcomes[effect.key] = Fitted(
                        png(2000, 1500), "image/png", PixelSize(2000, 1500), PixelSize(4000, 3000)
                    )
    return lower(envelope, chosen, decide(envelope, chosen, outcomes)).result["content"]


def test_an_image_in_its_place_is_named_before_it():
    caption, image = shaped("claude-code", IMAGE)
    assert caption == {"type": "text", "text": "[image 1: 40x30; its handle for tools is img_000000000000]"}
    assert image == IMAGE


def test_an_image_that_was_scaled_names_its_original_once():
    (caption, _) = shaped("claude-code", LARGE)
    assert caption["text"].count("img_") == 1
    assert 'gateway_view with handle "img_' in caption["text"]


def test_a_marker_names_what_moved():
    merged, image = shaped("default", {"type": "text", "text": "A chart:"}, IMAGE)
    assert merged["text"] == "A chart:\n[image 1: 40x30; its handle for tools is img_000000000000]"
    assert image == IMAGE


def test_sound_that_is_shown_as_it_is_is_named_before_it():
    caption, sound = shaped("passthrough", SOUND)
    assert caption["text"].startswith("[audio 1: audio/wav, ")
    assert caption["text"].endswith("; its handle for tools is img_000000000000]")
    assert sound == SOUND


@pytest.mark.parametrize("handles", ["hidden", "useful"])
def test_nothing_is_named_unless_that_was_decided(handles: str):
    assert shaped("passthrough", IMAGE, SOUND, handles=handles) == [IMAGE, SOUND]


def test_a_store_that_is_full_costs_only_the_name():
    images = [block for block in shaped("claude-code", IMAGE, store_is_full=True) if block["type"] == "image"]
    assert images == [IMAGE]
    assert shaped("claude-code", IMAGE, store_is_full=True)[-1] == IMAGE


def test_a_history_that_shows_the_media_already_does_not_open_it_again():
    merged, _ = shaped("default", {"type": "text", "text": "A chart:"}, IMAGE)
    assert handles_in(lift({"content": [merged]})) == ()
    assert handles_in_text(merged["text"]) == ()
