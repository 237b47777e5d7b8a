"""What holds of every turn, on every API: it never raises, order is kept, and every block is accounted for."""

import base64
import json
import re
from itertools import count, pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.config.builtin_profiles import model_profiles
from gateway.content.shaping.turns import lower_turn_now
from gateway.core.model.blocks import AudioBlock, ImageBlock, ResourceBlock
from gateway.core.results.lift_result import lift
from gateway.core.results.rescue import rescue
from gateway.testing.model_apis import refusals, seen
from gateway.testing.model_apis.histories import history
from tests.core.model_apis import cases, sdk_types

MADE = vars(cases)
SDK = vars(sdk_types)
TARGETS = sorted(model_profiles())
KINDS = [
    "text",
    "blank",
    "png",
    "gif",
    "svg",
    "wav",
    "ogg",
    "pdf",
    "mp4",
    "thing",
    "csv",
    "note",
    "link",
    "broken",
    "odd",
]
HEADS = {
    "gif": b"GIF89a\x08\0\x08\0",
    "wav": b"RIFF\x64\0\0\0WAVEfmt ",
    "ogg": b"OggS",
    "pdf": b"%PDF-1.4\n",
    "mp4": b"\0\0\0\x18ftypisom",
    "thing": b"\0\1\2",
}
TYPES = {
    "wav": "audio/wav",
    "ogg": "audio/ogg",
    "pdf": "application/pdf",
    "mp4": "video/mp4",
    "thing": "application/x-t",
}


def block(kind: str, number: int) -> dict[str, Any]:
    """A block of a kind, whose content nothing else in the turn has."""
    data = MADE["encoded"](HEADS.get(kind, b"") + number.to_bytes(4, "big") + bytes(100))
    match kind:
        case "text":
            return MADE["text"](f"words-{number}.")
        case "blank":
            return MADE["text"](" ")
        case "png":
            return MADE["image"](MADE["picture"]("PNG", (8 + number, 8)))
        case "gif" | "broken":
            return MADE["image"](data if kind == "gif" else "no base64!", "image/gif")
        case "svg":
            return MADE["image"](MADE["SVG"], "image/svg+xml")
        case "wav" | "ogg":
            return MADE["audio"](data, TYPES[kind])
        case "csv":
            return MADE["blob"](MADE["encoded"](f"words-{number}.".encode()), f"files://{number}", "text/csv")
        case "note":
            return {"type": "resource", "resource": {"uri": f"notes://{number}", "text": f"words-{number}."}}
        case "link":
            return MADE["link"](f"links://words-{number}.")
        case "odd":
            return {"type": "hologram", "of": number}
        case _:
            return MADE["blob"](data, f"files://{number}", TYPES[kind])


@st.composite
def turns(draw: st.DrawFn) -> list[dict[str, Any]]:
    numbers = count()
    results = draw(
        st.lists(st.tuples(st.lists(st.sampled_from(KINDS), max_size=6), st.booleans()), min_size=1, max_size=3)
    )
    return [
        {
            "id": f"call{at:05}",
            "name": f"tool_{at}",
            "result": {"content": [block(kind, next(numbers)) for kind in kinds], "isError": is_error},
        }
        for at, (kinds, is_error) in enumerate(results)
    ]


def pieces(calls: list[dict[str, Any]]) -> list[str]:
    """The media of a turn as base64, in order; blank for what cannot be read."""
    found: list[str] = []
    for call in calls:
        for one in rescue(lift(call["result"])).blocks:
            if isinstance(one, ImageBlock | AudioBlock) or (isinstance(one, ResourceBlock) and one.resource.blob):
                is_text = one.found is not None and one.found.media_type == "text/csv"
                found += [] if is_text else [one.found.data if one.found else ""]
    return found


@settings(max_examples=200, deadline=None)
@given(turns(), st.sampled_from(TARGETS), st.sampled_from(["note", "transcode"]), st.sampled_from(["text", "native"]))
def test_every_turn_is_accepted_whole_and_in_order(
    calls: list[dict[str, Any]], target: str, on_unsupported: Any, links: Any
) -> None:
    turn = lower_turn_now(calls, target, on_unsupported=on_unsupported, links=links)
    assert lower_turn_now(calls, target, on_unsupported=on_unsupported, links=links) == turn
    SDK["VALIDATORS"].get(target, SDK["openai_chat"])(turn.messages)
    request = history(target, calls, turn.messages)
    assert refusals(target, request) == ()

    written = json.dumps(turn.messages)
    words = re.findall(r"words-(\d+)\.", json.dumps([call["result"]["content"] for call in calls if call]))
    said = [int(number) for number in re.findall(r"words-(\d+)\.", written)]
    assert said == sorted(said)
    assert set(map(int, words)) <= set(said)

    media = pieces(calls)
    shown = [base64.b64encode(one.content).decode() for one in seen(target, request)]
    assert len(shown) == len(set(shown))
    assert set(shown) <= set(media)
    for kind in ("image", "audio", "document", "video"):
        order = [
            media.index(base64.b64encode(one.content).decode()) for one in seen(target, request) if one.kind == kind
        ]
        # What stands in the tools' messages comes first, in order; then what follows them, in order.
        assert sum(later < earlier for earlier, later in pairwise(order)) <= 1
    lost = [data for data in media if data not in shown]
    accounted = [note for note in turn.notes if note.kind in ("named", "dropped", "failed", "converted")]
    assert len(accounted) >= len(lost), (lost, turn.notes)
    for call in calls:
        assert call["id"] in written or call["name"] in written
