"""Kept lists: only those are given early that were kept whole, by this user, for this host."""

import hashlib
import json
import os
import time
from pathlib import Path

import pytest

from gateway.config.list_facts import ListFacts
from gateway.serving.mcp.early_lists import EarlyLists
from gateway.serving.mcp.handshake import Handshake, Identity
from gateway.serving.mcp.kept_lists import KEPT_SECONDS, LARGEST, LISTS, MOST, KeptLists, key_of_list
from gateway.system.process_mark import PROCESS_MARK

KEY = "0" * 64
LIST = {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]}
CLIENT = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "host", "version": "1"},
}


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "lists"


@pytest.fixture
def kept(folder):
    lists = KeptLists(folder)
    lists.keep(KEY, json.dumps(LIST).encode(), "digest")
    return lists


def whole(body: bytes, **head) -> bytes:
    known = {"version": 1, "digest": "digest", "sha256": hashlib.sha256(body).hexdigest(), **head}
    return json.dumps(known).encode() + b"\n" + body


def test_what_was_kept_is_read(kept):
    assert kept.read(KEY, "tools/list") == (LIST, "digest")


def test_what_was_forgotten_is_not(kept):
    kept.forget(KEY)
    kept.forget(KEY)
    assert kept.read(KEY, "tools/list") is None


DEEP = b'{"tools":[{"name":"x","inputSchema":' + b'{"a":' * 150 + b"1" + b"}" * 150 + b"}]}"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[" * 200_000,
        b"{}\n" + json.dumps(LIST).encode(),
        whole(json.dumps(LIST).encode())[:-3],
        whole(json.dumps(LIST).encode(), version=2),
        whole(json.dumps(LIST).encode(), digest=None),
        whole(b"[]"),
        whole(b"{}"),
        whole(b"[" * 200_000),
        whole(b'{"tools": {}}'),
        whole(b'{"tools": [1]}'),
        whole(b'{"tools": [{"name": 1}]}'),
        whole(json.dumps({**LIST, "nextCursor": "2"}).encode()),
        whole(DEEP),
        whole(json.dumps({"tools": [{"name": "x" * LARGEST}]}).encode()),
    ],
)
def test_a_file_that_was_not_kept_whole_is_ignored(kept, folder, content):
    (file,) = folder.iterdir()
    file.write_bytes(content)
    file.chmod(0o600)
    assert kept.read(KEY, "tools/list") is None


@pytest.mark.parametrize("age", [KEPT_SECONDS + 60, -3_600])
def test_a_list_that_was_not_given_for_long_is_ignored(kept, folder, age):
    (file,) = folder.iterdir()
    os.utime(file, (time.time() - age, time.time() - age))
    assert kept.read(KEY, "tools/list") is None
    kept.touch(KEY)
    assert kept.read(KEY, "tools/list") is not None


@pytest.mark.skipif(os.name != "posix", reason="modes, links and pipes are POSIX's here")
def test_what_somebody_else_could_have_written_is_ignored(kept, folder, tmp_path):
    (file,) = folder.iterdir()
    file.chmod(0o666)
    assert kept.read(KEY, "tools/list") is None
    file.chmod(0o600)
    assert kept.read(KEY, "tools/list") is not None
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert kept.read(KEY, "tools/list") is None
    file.unlink()
    os.mkfifo(file, 0o600)
    assert kept.read(KEY, "tools/list") is None  # and does not wait for a writer
    file.unlink()
    file.mkdir()
    assert kept.read(KEY, "tools/list") is None


def test_only_so_many_are_kept_and_none_that_is_too_large(kept, folder):
    for number in range(MOST + 5):
        kept.keep(f"{number:064x}", json.dumps(LIST).encode(), "digest")
    assert len(list(folder.iterdir())) == MOST
    kept.keep(f"{MOST + 4:064x}", b'"' + b"x" * LARGEST + b'"', "digest")
    assert len(list(folder.iterdir())) == MOST - 1


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    lists = KeptLists(tmp_path / "file" / "lists")
    lists.keep(KEY, b"{}", "digest")
    lists.touch(KEY)
    lists.forget(KEY)
    assert lists.read(KEY, "tools/list") is None


def opened(client) -> Handshake:
    handshake = Handshake(Identity("gateway", "1"))
    handshake.answer("initialize", client)
    return handshake


def test_each_host_has_lists_of_its_own():
    others = [
        CLIENT,
        {**CLIENT, "protocolVersion": "2025-03-26"},
        {**CLIENT, "capabilities": {"elicitation": {}}},
        {**CLIENT, "clientInfo": {"name": "other", "version": "1"}},
        {**CLIENT, "clientInfo": {"name": "host", "version": "2"}},
    ]
    early = EarlyLists(KeptLists(Path("unused")), ListFacts("facts", 0.0))
    methods = tuple(LISTS)
    asked = [early.asked(method, None, opened(one)) for one in others for method in methods]
    other_facts = key_of_list("other", "tools/list", "2025-06-18", CLIENT)
    assert len({*(one.key for one in asked if one is not None), other_facts}) == len(methods) * len(others) + 1


def test_what_is_not_the_whole_list_of_a_host_of_the_handshake_era_is_not_kept():
    early = EarlyLists(KeptLists(Path("unused")), ListFacts("facts", 0.0))
    handshake = opened(CLIENT)
    assert early.asked("tools/list", {"_meta": {"progressToken": 1}}, handshake) is not None
    assert early.asked("tools/list", {"cursor": "2"}, handshake) is None
    assert early.asked("tools/call", {}, handshake) is None
    assert early.asked("tools/list", {}, Handshake(Identity("gateway", "1"))) is None
    assert KeptLists.of({"MCP_GATEWAY_CACHE": ""}) is None


def test_a_list_given_early_is_checked_once_by_a_request_of_which_the_host_hears_nothing(kept, folder):
    early, handshake = EarlyLists(kept, ListFacts("facts", 0.0)), opened(CLIENT)
    asked = early.asked("tools/list", {}, handshake)
    assert asked is not None
    assert asked.key is not None
    assert early.given("tools/list", asked) is None
    kept.keep(asked.key, json.dumps(LIST).encode(), "digest")
    first, second = early.given("tools/list", asked), early.given("tools/list", asked)
    assert first is not None
    assert first.request is not None
    assert second is not None
    assert (first.result, first.asked.given, first.request["method"]) == (LIST, "digest", "tools/list")
    assert (second.result, second.request) == (LIST, None)
    assert early.is_own(first.request["id"])
    assert not early.is_own("tools/list")
    assert not early.is_own(1)


def test_a_list_is_read_until_another_process_has_found_other_lists_of_an_upstream(kept, tmp_path):
    (tmp_path / "catalogues").mkdir()
    catalogue = tmp_path / "catalogues" / "one.json"

    def written(by: str, lists: str) -> bool:
        catalogue.write_text(f'{{"version":2,"by":"{by}","lists":"{lists}","tools":[]}}')
        return kept.read(KEY, "tools/list") is not None

    assert written(PROCESS_MARK, "a")
    assert not written("other", "a")  # it was not there
    kept.keep(KEY, json.dumps(LIST).encode(), "digest")
    assert written("third", "a")
    assert not written("third", "b")
    assert not kept.touch(KEY)
