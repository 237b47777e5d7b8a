"""What counts as base64 in text, and what must not."""

import base64
import io
import json
import random
import textwrap

import pytest
from PIL import Image

from gateway.hosts.simulators.base64_runs import base64_runs
from gateway.hosts.simulators.seen import Seen, SeenText

NOISE = base64.b64encode(random.Random(1).randbytes(3_000)).decode()
WORDS = (
    "The quick brown fox jumps over 13 lazy dogs and then, in 2026, writes about HTTPServer, iVBOR and "
    "AbstractSingletonProxyFactoryBean in /usr/local/lib/python3.11/site-packages/numpy/core/tests/data.\n"
)


def _png() -> str:
    out = io.BytesIO()
    Image.new("RGB", (2, 2), "teal").save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode()


def _leak(text: str) -> int:
    return Seen((SeenText(text),)).base64_leak


def test_a_run_of_encoded_bytes_counts_with_every_character() -> None:
    assert _leak(f"before {NOISE} after") == len(NOISE) == 4_000


def test_a_run_in_json_counts_with_every_character() -> None:
    dumped = json.dumps({"content": [{"type": "image", "data": NOISE, "mimeType": "image/png"}]})
    assert _leak(dumped) == len(NOISE)


@pytest.mark.parametrize("wrapped", [textwrap.fill(NOISE, 76), json.dumps({"mail": textwrap.fill(NOISE, 76)})])
def test_wrapped_base64_counts_also_where_it_was_escaped(wrapped: str) -> None:
    assert len(NOISE) <= _leak(wrapped) <= len(NOISE) + 60


def test_base64_in_the_alphabet_for_urls_counts() -> None:
    assert _leak(base64.urlsafe_b64encode(random.Random(2).randbytes(600)).decode()) == 800


def test_a_tiny_picture_counts_by_its_beginning() -> None:
    assert len(_png()) < 120
    assert _leak(_png()) == len(_png())


def test_a_short_data_uri_counts() -> None:
    assert _leak("![dot](data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=)") == 32


def test_a_vector_image_as_base64_counts() -> None:
    svg = b'<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"><circle cx="20" cy="20" r="9"/></svg>'
    data = base64.b64encode(svg).decode()
    assert _leak(data) == len(data)


def test_a_piece_out_of_the_middle_counts() -> None:
    assert len(base64_runs(f"...[truncated 900 chars]...{NOISE[1_000:3_000]}")) == 1


@pytest.mark.parametrize(
    "text",
    [
        WORDS * 10_000,
        "".join(WORDS.split()) * 100,
        "x" * 2_000_000,
        "\n" * 100_000,
        random.Random(3).randbytes(100_000).hex(),
        random.Random(3).randbytes(100_000).hex().upper(),
        "0123456789" * 10_000,
        "/usr/local/share/documents" * 400,
        "word_index_of_the_whole_document/Chapter1/" * 400,
        "=" * 5_000,
        "-" * 5_000,
        "3.14159265358979 " * 5_000,
        "SGVsbG8sIHdvcmxkIQ==",
    ],
    ids=["words", "words-joined", "one-letter", "empty-lines", "hex", "hex-capitals", "digits", "path", "names",
         "rule", "dashes", "numbers", "one-short-token"],
)  # fmt: skip
def test_ordinary_text_does_not_count_however_long_it_is(text: str) -> None:
    assert _leak(text) == 0


def test_only_what_the_model_reads_as_text_counts() -> None:
    assert Seen(()).base64_leak == 0
