"""`mcp-gateway calibrate`: beside a gateway that runs, and before one that is started meanwhile."""

import json
import os
import re

import pytest

from gateway.core.profiles.matrix import read_matrix

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Unix sockets are POSIX's")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where measured profiles go."""
    path = tmp_path / "profiles"
    monkeypatch.setenv("MCP_GATEWAY_PROFILES", str(path))
    return path


def tools(process):
    process.send(id="list", method="tools/list", params={})
    return [tool["name"] for tool in process.answer("list")["result"]["tools"]]


def told(process, method):
    while (line := process.out.get(timeout=60)) is not None:
        if json.loads(line).get("method") == method:
            return
    raise AssertionError(f"the process ended without {method}")


def until_offered(process):
    while "gateway_calibrate_show" not in tools(process):
        told(process, "notifications/tools/list_changed")


def calls(process, name, **arguments):
    """All text of a result: this host shows its model no more."""
    process.send(id="call", method="tools/call", params={"name": name, "arguments": arguments})
    content = process.answer("call")["result"]["content"]
    return "\n".join(block["text"] for block in content if block["type"] == "text")


def reads_text_alone(process):
    """A model that goes through the whole of it; the last thing that it was told."""
    for _ in range(30):
        seen = re.findall(r"line is (\d{5})", calls(process, "gateway_calibrate_show"))
        answer = calls(process, "gateway_calibrate_report", codes=seen, model="tiny-1")
        if "end your turn" in answer:
            return calls(process, "gateway_calibrate_report", codes=[], after_user_message=True)
    raise AssertionError(answer)


def test_a_running_gateway_is_calibrated_and_its_host_told_of_the_tools(start, pictures, folder, command):
    gateway = start("serve", "--config", pictures())
    gateway.initialize("Some Host")
    assert "gateway_calibrate_show" not in tools(gateway)
    calibrate = start("calibrate")
    calibrate.line_with("Please calibrate the gateway.")
    until_offered(gateway)
    assert {"gateway_calibrate_show", "gateway_calibrate_report"} <= set(tools(gateway))
    assert "From now on the profile some-host-1 is used" in reads_text_alone(gateway)
    out = calibrate.rest(calibrate.out)
    assert calibrate.wait() == 0
    assert out[0] == (
        f"Some Host 1 is calibrated: profile some-host-1, which extends default, in {folder / 'some-host-1.toml'}"
    )
    assert "  read: none of png, jpeg, webp, gif, neither at once nor after the next message" in out
    assert out[-1] == "All of it: mcp-gateway profiles show some-host-1"
    shown = command("profiles", "show", "some-host-1").out
    assert "chosen for  some-host 1\n" in shown
    assert 'image.show = "line"' in shown
    assert "measured on 1, checked" in shown
    assert "model tiny-1" in shown
    assert "gateway_calibrate_show" not in tools(gateway)


def test_a_gateway_that_starts_meanwhile_offers_the_tools_at_once(start, pictures, folder):
    calibrate = start("calibrate", "--json")
    calibrate.line_with("Ctrl-C")
    gateway = start("serve", "--config", pictures())
    gateway.initialize("Some Host")
    assert "gateway_calibrate_show" in tools(gateway)
    assert "is done" in reads_text_alone(gateway)
    host = json.loads("\n".join(calibrate.rest(calibrate.out)))["host"]
    assert calibrate.wait() == 0
    assert (host["name"], host["phase"], host["profile"], host["problem"]) == ("Some Host", "over", "some-host-1", None)
    assert host["place"] == str(folder / "some-host-1.toml")


def test_only_the_named_host_is_asked(start, pictures, folder):
    gateway = start("serve", "--config", pictures())
    gateway.initialize("Some Host")
    calibrate = start("calibrate", "--host", "another", "--minutes", "0.05")
    assert calibrate.wait() == 1
    assert "error: no host was calibrated within 0.05 minutes" in calibrate.rest(calibrate.err)
    assert "gateway_calibrate_show" not in tools(gateway)
    assert not folder.exists()


def test_who_reports_nothing_right_is_not_calibrated(start, pictures, folder):
    gateway = start("serve", "--config", pictures())
    gateway.initialize("Some Host")
    calibrate = start("calibrate", "--json")
    until_offered(gateway)
    answer = ""
    while "without a profile" not in answer:
        calls(gateway, "gateway_calibrate_show")
        answer = calls(gateway, "gateway_calibrate_report", codes=["99999"])
    host = json.loads("\n".join(calibrate.rest(calibrate.out)))["host"]
    assert calibrate.wait() == 1
    assert host["problem"] == "the model did not report the code in plain text"
    assert not folder.exists()


def test_what_was_read_is_shown_and_written_to_a_file_to_send_in(start, pictures, folder, tmp_path):
    file = tmp_path / "some-host.json"
    gateway = start("serve", "--config", pictures())
    gateway.initialize("/home/ann/Some Host")
    calibrate = start("calibrate", "--export", str(file), "--yes")
    calibrate.line_with("Please calibrate the gateway.")
    until_offered(gateway)
    reads_text_alone(gateway)
    said = "\n".join(calibrate.rest(calibrate.err))
    assert calibrate.wait() == 0
    text = file.read_text()
    assert text.rstrip() in said
    assert not re.search(r"(?<!\d)\d{5}(?!\d)|/home|ann|" + re.escape(str(tmp_path)), text.replace("text_52000", ""))
    records = read_matrix(file.read_bytes(), file.name)
    assert {(one.host, one.title, one.version, one.model) for one in records} == {
        ("some-host", "Some Host", "1", "tiny-1")
    }
    cells = {one.case: one.directly.verdict for one in records}
    assert (cells["text"], cells["chart"], cells["sound"]) == ("seen", "lost", "lost")


def test_a_file_that_cannot_be_written_is_said_before_anybody_waits(command, tmp_path):
    there = tmp_path / "there.json"
    there.write_text("mine")
    for arguments, words in (
        ((str(there), "--yes"), "is there already"),
        ((str(tmp_path / "missing" / "x.json"), "--yes"), "is not a folder"),
        ((str(tmp_path / "new.json"),), "give --yes"),
    ):
        ended = command("calibrate", "--export", *arguments)
        assert ended.code != 0
        assert words in ended.err
        assert "Please calibrate" not in ended.err
    assert there.read_text() == "mine"
