"""Media written to files."""

import base64

import pytest

from gateway.cli.save_media import safe_stem, save_media
from gateway.core.results.lift_result import lift
from gateway.errors import ContentError

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(30)).decode()


def envelope(*blocks):
    return lift({"content": list(blocks)})


IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}


@pytest.mark.parametrize(
    ("text", "stem"),
    [
        ("charts__draw", "charts__draw"),
        ("../../etc/passwd", "etc-passwd"),
        ("..", "result"),
        ("", "result"),
        ("-rf", "rf"),
        (".hidden", "hidden"),
        ("C:\\windows\\x", "C-windows-x"),
        ("a\x1b[2J\nb", "a-2J-b"),
        ("日本", "result"),
        ("x" * 300, "x" * 80),
    ],
)
def test_a_file_name_is_made_of_harmless_characters(text, stem):
    assert safe_stem(text) == stem


def test_media_is_written_with_the_ending_of_what_it_is(tmp_path):
    found = envelope(
        {"type": "text", "text": "x"},
        {**IMAGE, "mimeType": "../../x"},
        {"type": "resource", "resource": {"uri": "file:///../../a.sh", "blob": PNG}},
        {"type": "image", "data": "broken!"},
        {"type": "resource", "resource": {"uri": "u", "blob": "aGVsbG8=", "mimeType": "application/x-sh"}},
    )
    saved = save_media(found, tmp_path / "new" / "folder", "../tool")
    assert {index: path.name for index, path in saved.items()} == {1: "tool-1.png", 2: "tool-2.png", 4: "tool-3.bin"}
    assert {path.parent for path in saved.values()} == {tmp_path / "new" / "folder"}
    assert saved[1].read_bytes() == base64.b64decode(PNG)
    assert saved[4].read_bytes() == b"hello"


def test_nothing_is_written_over(tmp_path):
    (tmp_path / "tool-1.jpg").write_text("mine")
    first = save_media(envelope(IMAGE), tmp_path, "tool")
    second = save_media(envelope(IMAGE), tmp_path, "tool")
    assert [path.name for path in (*first.values(), *second.values())] == ["tool-2.png", "tool-3.png"]
    assert (tmp_path / "tool-1.jpg").read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_an_error_that_names_it(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ContentError) as caught:
        save_media(envelope(IMAGE), tmp_path / "file", "x")
    assert str(caught.value) == f"cannot write to {tmp_path / 'file'}: file exists"
