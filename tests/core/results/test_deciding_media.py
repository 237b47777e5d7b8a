"""What becomes of documents, sound, links and files, decided on plain data."""

import base64
from typing import Any

import pytest

from gateway.core.model.base64_text import mend
from gateway.core.model.contents import found_in, may_move
from gateway.core.model.effects import ConvertAudio, FitImage, ReadDocument, RenderPages
from gateway.core.results.decisions import decide
from gateway.core.results.lift_result import lift
from tests.core.results.test_lowering_mcp import PDF, WAV, blob, image, png, profile, seen, shape, text


def wanted(content: list[Any], host: Any) -> list[type]:
    return [type(effect) for effect in tuple(decide(lift({"content": content}), host, {}).wanted.values())]


def test_bytes_decide_what_a_document_is_not_its_label() -> None:
    host = profile(document={"show": "text"})
    for block in (blob(PDF, mimeType="text/plain"), image(PDF), blob(PDF)):
        assert ReadDocument in wanted([block], host)
    not_one = blob(base64.b64encode(b"not a PDF at all").decode(), mimeType="application/pdf")
    assert ReadDocument not in wanted([not_one], host)


def test_a_document_in_an_image_block_is_native_as_a_resource() -> None:
    lowered = shape({"content": [image(PDF)]}, profile(document={"show": "native"}))
    (block,) = lowered.result["content"]
    resource = {"uri": "rescued:1.pdf", "mimeType": "application/pdf", "blob": PDF}
    assert block == {"type": "resource", "resource": resource}


def test_pages_follow_the_line_of_their_document_and_name_it() -> None:
    lowered = shape({"content": [text("before"), blob(PDF)]}, profile(document={"show": "pages", "max_pages": 2}))
    assert seen(lowered) == [
        "before",
        '[document 1: doc://a.pdf, "A Title", application/pdf, 109 bytes, 3 pages, pages 1 to 2 as images; '
        'open it with gateway_view, handle "kept_keep1"]',
        "[image 1: page 1 of 3 of doc://a.pdf, 600x800]",
        "<image image/png>",
        "[image 2: page 2 of 3 of doc://a.pdf, 600x800]",
        "<image image/png>",
    ]


@pytest.mark.parametrize(
    "changes", [{"image": {"show": "line"}}, {"image": {"max_count": 1}}, {"error": {"media": "line"}}]
)
def test_pages_that_cannot_be_shown_are_text(changes: dict[str, Any]) -> None:
    result = {"content": [image(), blob(PDF)], "isError": True}
    shown = seen(shape(result, profile(document={"show": "pages"}, **changes)))
    assert shown[-1].startswith("[page 1 of 3]\none")
    assert "[page 2 of 3: no text]" in shown[-1]


@pytest.mark.parametrize("failing", ["pages", "read"])
def test_a_document_that_cannot_be_worked_on_falls_back(failing: str) -> None:
    shown = seen(shape({"content": [blob(PDF)]}, profile(document={"show": "pages"}), failing))
    assert len(shown) == (1 if failing == "read" else 2)
    assert "it broke" in shown[0] or shown[1].startswith("[page 1 of 3]")


def test_pages_too_many_for_a_result_are_left_out_and_said() -> None:
    host = profile(document={"show": "pages"}, limits={"result_chars": 30_000})
    lowered = shape({"content": [blob(PDF)]}, host)
    assert "[page 1 of 3 of doc://a.pdf: not shown, too large for one result]" in seen(lowered)
    assert any(note.kind == "cut" for note in lowered.notes)


def test_text_of_a_document_is_cut_like_any_text_and_both_are_noted() -> None:
    host = profile(document={"show": "text", "max_pages": 1}, text={"max_chars": 10})
    content = [blob(PDF), text("many words " * 50)]
    notes = [note.text for note in shape({"content": content}, host).notes if note.kind == "cut"]
    assert notes[0] == "2 of 3 pages are left out"
    assert notes[1].endswith("characters of text")


def test_sound_is_converted_only_where_it_has_to_be() -> None:
    sound = {"type": "audio", "data": WAV, "mimeType": "audio/wav"}
    native = {"show": "native", "types": ["audio/wav"]}
    assert shape({"content": [sound]}, profile(audio=native)).result["content"] == [sound]
    assert wanted([sound], profile(audio={**native, "types": ["audio/mpeg"]})) == [ConvertAudio]
    assert wanted([sound], profile(audio={**native, "max_bytes": 10})) == [ConvertAudio]
    assert wanted([sound], profile(audio={**native, "max_seconds": 10})) == [ConvertAudio]


def test_sound_that_was_cut_says_so_in_place_and_in_its_marker() -> None:
    sound = {"type": "audio", "data": WAV, "mimeType": "audio/wav"}
    rules = {"show": "native", "types": ["audio/mpeg"], "max_seconds": 3}
    words = "the first 3.0 s of 8.0 s; whole under handle kept_keep0"
    assert seen(shape({"content": [sound]}, profile(audio=rules)))[0] == f"[audio 1: {words}]"
    first = seen(shape({"content": [sound]}, profile(audio=rules, order="text-first")))[0]
    assert first.startswith("[audio 1: audio/mpeg, the first 3.0 s of 8.0 s")
    assert first.endswith(f"{words}]")


def test_embedded_sound_is_sound_where_the_host_shows_it_so() -> None:
    host = profile(audio={"show": "native"}, blob={"audio_as_audio": True})
    lowered = shape({"content": [blob(WAV, "rec://a.wav")]}, host)
    assert lowered.result["content"] == [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]


def test_a_file_of_text_is_text_where_embedded_text_is() -> None:
    table = blob(base64.b64encode("ä,b\n1,2".encode()).decode(), "db://t.csv", mimeType="text/csv")
    assert seen(shape({"content": [table]}, profile())) == ["[resource <db://t.csv> (text/csv)]\nä,b\n1,2"]
    native = profile(blob={"show": "native"})
    assert shape({"content": [table]}, native).result["content"] == [table]
    noise = blob(base64.b64encode(b"\xff\xfe\x00\x01").decode(), "db://t.csv", mimeType="text/csv")
    assert seen(shape({"content": [noise]}, profile()))[0].startswith("[document 1: db://t.csv, text/csv, 4 bytes")


def test_what_a_host_can_open_is_a_line_with_its_path() -> None:
    host = profile(image={"show": "file"}, document={"show": "file"}, blob={"show": "file"}, audio={"show": "file"})
    sound = {"type": "audio", "data": WAV, "mimeType": "audio/wav"}
    shown = seen(shape({"content": [image(), blob(PDF), sound]}, host))
    assert [f"; saved as /shared/file{index};" in line for index, line in enumerate(shown)] == [True] * 3


def test_words_stand_for_an_image_only_where_the_host_shows_none() -> None:
    described = shape({"content": [image()]}, profile(image={"show": "line"}), describes=("image",))
    assert seen(described) == [
        "[image 1, described by eyes (image/png, 40x30, 200 bytes; handle kept_keep0): A red square.]"
    ]
    hidden = image(annotations={"audience": ["user"]})
    host = profile(image={"show": "line"}, audience="respect")
    assert "meant for the user only" in seen(shape({"content": [hidden]}, host, describes=("image",)))[0]
    many = shape({"content": [image(), image(png(9, 9))]}, profile(image={"max_count": 1}), describes=("image",))
    assert "only 1 image is shown at once" in seen(many)[1]


def test_what_a_link_leads_to_stands_in_its_place_as_an_image() -> None:
    link = {"type": "resource_link", "uri": "a:b", "name": "n", "mimeType": "image/png"}
    host = profile(link={"show": "inline"}, blob={"image_as_image": False})
    assert seen(shape({"content": [link, text("after")]}, host)) == [
        "[image 1: resource <a:b>]",
        "<image image/png>",
        "after",
    ]
    failed = shape({"content": [link]}, host, failing="link")
    assert seen(failed) == ["[link n <a:b> (image/png); read it with gateway_read, uri]"]


def test_media_keeps_its_room_however_long_the_text_is() -> None:
    content = [text("word " * 100_000), image(png(50, 50, 60_000))]
    lowered = shape({"content": content}, profile(limits={"result_chars": 150_000}))
    assert lowered.result["content"][-1]["data"] == content[1]["data"]
    assert len(seen(lowered)[0]) > 40_000


def test_the_text_of_a_failed_call_has_its_own_limit() -> None:
    host = profile(error={"max_chars": 1_000})
    assert len(seen(shape({"content": [text("x" * 5_000)], "isError": True}, host))[0]) <= 1_000
    assert seen(shape({"content": [text("x" * 5_000)]}, host)) == ["x" * 5_000]


def test_only_what_may_move_is_decoded_for_its_first_frame() -> None:
    still = profile(image={"types": ("image/png", "image/gif", "image/webp"), "animation": "first-frame"})
    gif = base64.b64encode(b"GIF89a\x05\0\x05\0" + bytes(100)).decode()
    assert wanted([image()], still) == []
    assert wanted([image(gif, "image/gif")], still) == [FitImage]


@pytest.mark.parametrize(
    ("content", "moves"),
    [
        (b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\x02\0\0\0" + bytes(20), True),
        (b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\x10\0\0\0" + bytes(20), False),
        (b"\x89PNG\r\n\x1a\n....acTL....IDAT", True),
        (b"\x89PNG\r\n\x1a\n....IDAT....acTL", False),
        (b"GIF89a" + bytes(20), True),
        (b"\xff\xd8\xff", False),
    ],
)
def test_the_beginning_of_an_image_says_whether_it_may_move(content: bytes, moves: bool) -> None:
    found = found_in(mend(base64.b64encode(content).decode()), None)
    assert found is not None
    assert may_move(found) is moves


def test_sound_in_a_container_for_video_is_sound_where_it_says_so() -> None:
    data = base64.b64encode(b"\0\0\0\x18ftypisom" + bytes(20)).decode()
    for declared, really in (("audio/mp4", "audio/mp4"), ("video/mp4", "video/mp4"), (None, "video/mp4")):
        found = found_in(mend(data), declared)
        assert found is not None
        assert found.media_type == really


def test_pages_are_drawn_once_and_again_only_where_they_do_not_fit() -> None:
    host = profile(document={"show": "pages"}, limits={"result_chars": 120_000})
    lowered = shape({"content": [blob(PDF)]}, host)
    pages = [block for block in lowered.result["content"] if block["type"] == "image"]
    assert len(pages) == 3
    assert all(len(page["data"]) < 40_000 for page in pages)
    assert RenderPages not in wanted([blob(PDF)], host)  # not before the number of pages is known


def test_a_result_with_very_many_media_is_probed_and_described_within_bounds() -> None:
    sound = {"type": "audio", "data": WAV, "mimeType": "audio/wav"}
    lines = seen(shape({"content": [sound] * 60}, profile()))
    assert sum("pcm_s16le" in line for line in lines) == 50
    host = profile(image={"show": "line"})
    lines = seen(shape({"content": [image()] * 30}, host, describes=("image",)))
    assert sum("described by" in line for line in lines) == 20
    assert all(line.startswith(f"[image {number}") for number, line in enumerate(lines, 1))
