"""`mcp-gateway calibrate`: beside a gateway that runs, and before one that is started meanwhile."""

import json
import os
import re

import pytest

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
