"""Files that an upstream names in its text become content: from its allowed folders alone, once, and bounded."""

import base64
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from gateway.routing import named_files
from gateway.routing.named_files import MOST_FILES, with_named_files

PDF = b"%PDF-1.4\n" + bytes(50)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    Image.new("RGB", (9, 7), "red").save(tmp_path / "out" / "shot.png")
    (tmp_path / "out" / "page.pdf").write_bytes(PDF)
    (tmp_path / "secret.pdf").write_bytes(PDF + b"secret")
    return tmp_path


def attached(folder: Path, words: str, *more: Any, files: str = "out") -> list[dict[str, Any]]:
    result = {"content": [{"type": "text", "text": words}, *more]}
    whole, notes = with_named_files(result, [folder / files], folder)
    added = whole["content"][1 + len(more) :]
    assert len(notes) == len(added)
    return added


@pytest.mark.parametrize(
    "words",
    [
        "[Page as pdf](./out/page.pdf)",
        "saved to out/page.pdf.",
        "- `out/page.pdf`",
        "file://{}/out/page.pdf",
        '"{}/out/page.pdf"',
    ],
)
def test_a_named_document_is_attached(folder: Path, words: str) -> None:
    (block,) = attached(folder, words.replace("{}", str(folder)))
    assert base64.b64decode(block["resource"]["blob"]) == PDF
    assert block["resource"]["uri"] == (folder / "out" / "page.pdf").as_uri()


def test_a_file_that_only_structured_content_names_is_attached_too(folder: Path) -> None:
    structured = {"saved": [{"path": str(folder / "out" / "shot.png")}], "uri": (folder / "out" / "page.pdf").as_uri()}
    result = {"content": [{"type": "text", "text": "out/page.pdf"}], "structuredContent": structured}
    whole, notes = with_named_files(result, [folder / "out"], folder)
    assert [block["type"] for block in whole["content"]] == ["text", "resource", "image"]
    assert len(notes) == 2


def test_a_file_uri_is_decoded(folder: Path) -> None:
    (folder / "out" / "shot.png").rename(folder / "out" / "my shot.png")
    (block,) = attached(folder, f"see {(folder / 'out' / 'my shot.png').as_uri()}")
    assert block["type"] == "image"


def test_a_named_picture_is_an_image_and_not_shown_twice(folder: Path) -> None:
    (block,) = attached(folder, "see out/shot.png and again out/shot.png")
    assert block["type"] == "image"
    assert attached(folder, "see out/shot.png", block) == []


@pytest.mark.parametrize(
    "words",
    [
        "secret.pdf",
        "out/../secret.pdf",
        "{}/secret.pdf",
        "/etc/passwd.png",
        "out/missing.pdf",
        "out/link.pdf",
        "out/page.pdfx",
    ],
)
def test_what_is_outside_or_no_file_is_passed_over(folder: Path, words: str) -> None:
    (folder / "out" / "link.pdf").symlink_to(folder / "secret.pdf")
    assert attached(folder, words.replace("{}", str(folder))) == []


def test_what_is_no_media_or_no_regular_file_is_passed_over(folder: Path) -> None:
    (folder / "out" / "words.pdf").write_text("only words")
    os.mkfifo(folder / "out" / "pipe.pdf")
    (folder / "out" / "folder.pdf").mkdir()
    assert attached(folder, "out/words.pdf out/pipe.pdf out/folder.pdf") == []


def test_only_so_many_are_read(folder: Path) -> None:
    names = [f"out/{number}.pdf" for number in range(MOST_FILES + 5)]
    for number, name in enumerate(names):
        (folder / name).write_bytes(PDF + bytes([number]))
    assert len(attached(folder, " ".join(names))) == MOST_FILES


@pytest.mark.parametrize("result", [{}, {"content": "out/page.pdf"}, {"content": [None, 5, {"text": 7}]}])
def test_a_malformed_result_stays_as_it_is(folder: Path, result: dict[str, Any]) -> None:
    assert with_named_files(result, [folder / "out"], folder) == (result, ())


def test_a_failed_call_is_not_read_for(folder: Path) -> None:
    result = {"content": [{"type": "text", "text": "out/page.pdf"}], "isError": True}
    assert with_named_files(result, [folder / "out"], folder) == (result, ())


_DEFINED = re.compile(
    r"""[^\s"'`()<>\[\]|*?]{1,400}\.(?:pdf|png|jpe?g|gif|webp|svg|bmp|tiff?|avif|heic|wav|mp3|flac|ogg|m4a)(?![\w/\\])""",
    re.IGNORECASE,
)
PIECES = st.sampled_from(
    ["a", ".png", ".PDF", ".tif", ".tiff", ".jpg.", ".", ",", "/", "\\", " ", "(", '"', "x" * 150, "x" * 398, "é", "f"]
)


@settings(max_examples=500)
@given(st.lists(PIECES, max_size=14).map("".join))
def test_the_names_in_a_text_are_those_that_one_expression_would_find(text: str) -> None:
    assert list(named_files._names([text])) == _DEFINED.findall(text)


@pytest.mark.parametrize("piece", ["a.", "a.png", ".png", "a.pn", "(", "x", "a/.png,"])
def test_a_hostile_text_is_looked_through_in_linear_time(folder: Path, piece: str) -> None:
    text = piece * (100_000 // len(piece))
    began = time.thread_time()
    assert attached(folder, text, *[{"type": "text", "text": text}] * 20) == []
    assert time.thread_time() - began < 10


def test_only_so_many_characters_and_values_are_looked_through(folder: Path) -> None:
    long = "x " * 50_000
    assert attached(folder, long, *[{"type": "text", "text": long}] * 9, {"type": "text", "text": "out/page.pdf"}) == []
    assert attached(folder, long, *[{"type": "text", "text": long}] * 8, {"type": "text", "text": "out/page.pdf"})
    many = {"content": [], "structuredContent": [[0] * 100_000, "out/page.pdf"]}
    assert with_named_files(many, [folder / "out"], folder)[1] == ()


def test_only_so_many_paths_are_looked_for_and_bytes_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = " ".join(f"out/{n}.pdf" for n in range(named_files.MOST_NAMES))
    assert attached(folder, f"{names} out/page.pdf") == []
    for n in range(5):
        (folder / "out" / f"f{n}.pdf").write_bytes(PDF + bytes([n]) * 1_000)
    monkeypatch.setattr(named_files, "MOST_BYTES_READ", 2 * (len(PDF) + 1_000))
    assert len(attached(folder, " ".join(f"out/f{n}.pdf" for n in range(5)))) == 2
