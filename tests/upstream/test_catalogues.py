"""Catalogues on disk: kept for their owner alone, read only when they are sound."""

import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.config.upstream_settings import Timeouts, UpstreamSettings
from gateway.upstream import Upstreams, UpstreamState
from gateway.upstream.catalogues import KEPT_SECONDS, Catalogues, RememberedLists

SETTINGS = UpstreamSettings(command="npx", args=("-y", "x"), env={"API_KEY": "hunter22-secret"})
FULL = RememberedLists(
    tools=({"name": "draw", "inputSchema": {}, "odd": [1.5, None, 12345678901234567890, "\ud800"]},),
    resources=({"uri": "raw://one"},),
    templates=({"uriTemplate": "raw://{x}"},),
    prompts=({"name": "greet", "arguments": []},),
    hints={"prompts": {"ttlMs": 5, "_meta": {"a/b": 1}}, "tools": {"ttlMs": None, "_meta": {}}},
    era="modern",
    revision="2026-07-28",
    server_info={"name": "x"},
    capabilities={"tools": {}},
    instructions="be kind",
    eras=("handshake",),
    silent=("modern",),
)


def test_what_was_kept_is_recalled_as_it_was(tmp_path: Path) -> None:
    catalogues = Catalogues(tmp_path / "new" / "folder")
    assert catalogues.recall(SETTINGS) is None
    catalogues.keep(SETTINGS, FULL)
    assert catalogues.recall(SETTINGS) == FULL


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_file_and_folder_are_their_owners_alone(tmp_path: Path) -> None:
    catalogues = Catalogues(tmp_path / "folder")
    catalogues.keep(SETTINGS, FULL)
    (path,) = (tmp_path / "folder").iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_neither_name_nor_content_tells_a_secret(tmp_path: Path) -> None:
    catalogues = Catalogues(tmp_path)
    catalogues.keep(SETTINGS, FULL)
    path = catalogues.path(SETTINGS)
    assert "hunter22" not in path.name + path.read_text("ascii")


@pytest.mark.parametrize(
    "change",
    [{"args": ("-y", "z")}, {"env": {"API_KEY": "other"}}, {"cwd": Path("/elsewhere")}, {"command": "uvx"}],
)
def test_other_settings_are_another_upstream(tmp_path: Path, change: dict[str, Any]) -> None:
    catalogues = Catalogues(tmp_path)
    assert catalogues.path(SETTINGS.model_copy(update=change)) != catalogues.path(SETTINGS)


def test_settings_that_say_nothing_of_the_server_do_not_count(tmp_path: Path) -> None:
    catalogues = Catalogues(tmp_path)
    patient = SETTINGS.model_copy(update={"timeout": Timeouts(call=1), "idle_stop": 5.0})
    assert catalogues.path(patient) == catalogues.path(SETTINGS)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"version": 1, "tools": []}',
        b'{"tools": []}',
        b'{"version": 2, "tools": [{"no": "name"}]}',
        b"[" * 200_000,
    ],
)
def test_a_file_that_is_not_sound_is_as_good_as_none(tmp_path: Path, content: bytes) -> None:
    catalogues = Catalogues(tmp_path)
    catalogues.path(SETTINGS).write_bytes(content)
    assert catalogues.recall(SETTINGS) is None


def test_fields_of_the_wrong_kind_are_left_out(tmp_path: Path) -> None:
    catalogues = Catalogues(tmp_path)
    wrong = {"version": 2, "tools": [1, {"name": "x"}], "resources": "no", "era": 3, "capabilities": [], "later": 1}
    wrong |= {"prompts": 5, "hints": {"tools": 3, "nothing": {}}, "eras": "modern", "silent": [1]}
    catalogues.path(SETTINGS).write_text(json.dumps(wrong))
    assert catalogues.recall(SETTINGS) == RememberedLists(tools=({"name": "x"},))


def test_a_folder_that_cannot_be_written_to_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    catalogues = Catalogues(tmp_path / "file" / "folder")
    catalogues.keep(SETTINGS, FULL)
    assert catalogues.recall(SETTINGS) is None


def test_a_catalogue_that_is_too_large_is_not_kept_nor_is_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogues = Catalogues(tmp_path)
    catalogues.keep(SETTINGS, RememberedLists())
    monkeypatch.setattr("gateway.upstream.catalogues.LARGEST", 100)
    catalogues.keep(SETTINGS, FULL)
    assert list(tmp_path.iterdir()) == []


def test_files_that_nobody_has_used_for_a_month_are_removed(tmp_path: Path) -> None:
    now = [1_000_000_000.0]
    catalogues = Catalogues(tmp_path, now=lambda: now[0])
    old, used, new = (SETTINGS.model_copy(update={"command": name}) for name in ("old", "used", "new"))
    for settings in (old, used):
        catalogues.keep(settings, FULL)
        os.utime(catalogues.path(settings), (now[0], now[0]))
    (tmp_path / "other").write_text("somebody else's")
    os.utime(tmp_path / "other", (0, 0))
    catalogues.keep(used, FULL, unchanged=True)
    now[0] += KEPT_SECONDS + 1
    catalogues.keep(new, FULL)
    assert set(tmp_path.iterdir()) == {catalogues.path(used), catalogues.path(new), tmp_path / "other"}


@pytest.mark.anyio
async def test_a_restarted_gateway_lists_the_tools_of_an_upstream_that_does_not_answer(
    stdio: Any, tmp_path: Path, changes: Any
) -> None:
    catalogues = Catalogues(tmp_path)
    settings = {"raw": stdio("modern")}
    with anyio.fail_after(30):
        async with Upstreams(settings, on_change=changes, catalogues=catalogues) as upstreams:
            assert await upstreams["raw"].ready(20)
            known = upstreams["raw"].tools()
    # Its file is found again by its settings, whatever it does now; here it is another's, which never answers.
    slow = {"raw": stdio("silent")}
    os.rename(catalogues.path(settings["raw"]), catalogues.path(slow["raw"]))
    async with Upstreams(slow, on_change=changes, catalogues=catalogues) as upstreams:
        raw = upstreams["raw"]
        assert raw.state is UpstreamState.STARTING
        assert raw.tools() == known
        assert raw.resources()
        assert (raw.era, raw.revision, raw.capabilities["resources"]) == ("modern", "2026-07-28", {})


@pytest.mark.anyio
async def test_what_changed_meanwhile_is_announced_and_kept(stdio: Any, tmp_path: Path, changes: Any) -> None:
    catalogues = Catalogues(tmp_path)
    settings = stdio()
    catalogues.keep(settings, FULL)
    with anyio.fail_after(30):
        async with Upstreams({"raw": settings}, on_change=changes, catalogues=catalogues) as upstreams:
            assert upstreams["raw"].tools() == FULL.tools
            assert await upstreams["raw"].ready(20)
            assert ("raw", "tools") in changes.all
            await upstreams["raw"].request("tools/call", {"name": "grow"}, timeout=Timeouts())
            await changes.until(lambda: upstreams["raw"].tools()[-1]["name"].startswith("extra"))
            grown = upstreams["raw"].tools()
            while (kept := catalogues.recall(settings)) is None or kept.tools != grown:
                await anyio.lowlevel.checkpoint()
            assert kept.era == "handshake"  # what was known of another server in its place is not believed
