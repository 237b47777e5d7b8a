"""Files that an upstream names in its text become content: from its allowed folders alone, once, and bounded."""

import base64
import os
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

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
