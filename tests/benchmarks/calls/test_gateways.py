from pathlib import Path

import pytest

from benchmarks.calls import gateways
from benchmarks.calls.gateways import GATEWAYS, MCP_PROXY, PASSTHROUGH, Place, left_out
from benchmarks.calls.run import SETTINGS, Options

BY_NAME = {gateway.name: gateway for gateway in GATEWAYS}


def command(name: str, place: Place) -> list[str] | None:
    found = BY_NAME[name].command
    assert found is not None
    return found(place)


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_every_gateway_is_given_the_port_and_the_upstream_of_its_setting(tmp_path: Path, setting) -> None:
    place = Place(setting, 8001, 9001, tmp_path)
    for name, gateway in BY_NAME.items():
        if gateway.command is not None and (line := command(name, place)) is not None:
            assert line[-len(place.target) :] == place.target
            assert ("8001" in line) == (setting.front == "http")
            assert any("9001" in word for word in line) == (setting.back == "http")


def test_mcp_proxy_stands_between_two_transports_only(tmp_path: Path) -> None:
    fits = [str(setting) for setting in SETTINGS if command(MCP_PROXY, Place(setting, 1, 2, tmp_path)) is not None]
    assert fits == ["http to stdio, 2025-11-25", "stdio to http, 2025-11-25"]


def test_a_gateway_that_could_not_be_installed_is_left_out_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateways, "ENVIRONMENTS", tmp_path)
    assert left_out(BY_NAME[PASSTHROUGH]) is None
    assert left_out(BY_NAME[MCP_PROXY]) == "it is not installed"
    (tmp_path / "bench-mcp-proxy.failed").write_text("WARNING: x\nERROR: nothing at https://example.org/simple/\n\n")
    assert left_out(BY_NAME[MCP_PROXY]) == "ERROR: nothing at (address)"
    (tmp_path / "bench-mcp-proxy").mkdir()
    (tmp_path / "bench-mcp-proxy" / ".installed").touch()
    assert left_out(BY_NAME[MCP_PROXY]) is None


def test_a_run_that_was_narrowed_writes_no_page():
    assert Options(quick=True, rounds=1).is_whole
    assert not Options(cases=["text"]).is_whole
    assert not Options(parts=["calls"]).is_whole
