"""A calibration as records of the matrix: nothing but plain names gets in, and what was read can be had back."""

from datetime import date

import pytest

from gateway.core.profiles.calibrate_profile import PARTS, Sight, conclusions
from gateway.core.profiles.export_calibration import ExportedHost, calibration_records, plain_words, sight_of
from gateway.core.profiles.matrix import matrix_text, read_matrix
from gateway.core.profiles.profile import Profile

BLOCKS = [block for blocks in PARTS.values() for block in blocks]
HOST = ExportedHost("Acme IDE", "1.2", "acme-large", date(2026, 11, 23), "0.2.0")


def test_what_was_read_comes_back_and_leads_to_the_same_profile() -> None:
    lost = {"error picture", "sound", "picture 7", "end of a text of 52,000 characters"}
    sight = Sight(frozenset(BLOCKS), frozenset(BLOCKS) - lost - {"document"}, frozenset({"document"}))
    records = read_matrix(matrix_text(calibration_records(HOST, sight.read)).encode(), "sent.json")
    assert sight_of(records) == sight
    base = Profile(name="base")
    assert list(conclusions(sight_of(records), base)) == list(conclusions(sight, base)) != []
    cells = {record.case: record.directly for record in records if record.directly}
    assert (cells["eight"].verdict, cells["eight"].shown, cells["eight"].of) == ("lost", 7, 8)
    assert (cells["pdf"].verdict, cells["pdf"].why) == ("seen", "only after the next message")
    assert (cells["error"].verdict, cells["error_text"].verdict) == ("lost", "seen")
    assert (cells["text_52000"].verdict, cells["text_40000"].verdict) == ("lost", "seen")
    assert {record.evidence.reference for record in records} == {"mcp-gateway calibrate 0.2.0"}


def test_every_block_of_a_calibration_is_in_one_case() -> None:
    sight = Sight(frozenset(BLOCKS), frozenset(BLOCKS))
    read = [block for record in calibration_records(HOST, sight.read) for block in record.read or {}]
    assert sorted(read) == sorted(BLOCKS)


def test_a_part_that_was_not_shown_is_not_in_the_file() -> None:
    sight = Sight(frozenset({"plain", "png"}), frozenset({"plain"}))
    assert [record.case for record in calibration_records(HOST, sight.read)] == ["text", "chart"]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("Acme IDE (beta) 1.2+3", "Acme IDE (beta) 1.2+3"),
        ("/home/ann/models/qwen3-vl.gguf", "qwen3-vl.gguf"),
        (r"C:\Users\ann\ide.exe", "ide.exe"),
        ("https://ann:secret@host.example/", "host.example"),
        ("@acme/ide", "ide"),
        ("Acme\x1b[31m\n\u202eIDE", "Acme-31m-IDE"),
        ("x" * 1_000_000, "x" * 60),
        ("///", ""),
        ("日本", ""),
    ],
)
def test_names_lose_paths_and_all_but_plain_characters(given: str, kept: str) -> None:
    assert plain_words(given) == kept
    sight = Sight(frozenset({"plain"}), frozenset({"plain"}))
    host = ExportedHost(given, given, given, date(2026, 11, 23), "0.2.0")
    (record,) = read_matrix(matrix_text(calibration_records(host, sight.read)).encode(), "sent.json")
    assert (record.title, record.version, record.model) == (kept or "a host without a name", kept or None, kept or None)
