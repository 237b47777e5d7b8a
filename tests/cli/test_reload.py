"""A changed configuration, taken over by a gateway that runs: by itself, and by `mcp-gateway reload`."""

import json
import os
import re
import sys

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Unix sockets are POSIX's")


def told(process, method):
    """The next notification of a method."""
    while (line := process.out.get(timeout=60)) is not None:
        if json.loads(line).get("method") == method:
            return
    raise AssertionError(f"the process ended without {method}")


def names(process):
    process.send(id="list", method="tools/list", params={})
    return {tool["name"].partition("__")[0] for tool in process.answer("list")["result"]["tools"]}


def more_pictures(pictures):
    text = pictures().read_text()
    return "\n" + text.replace("[upstreams.pics]", "[upstreams.more]")


def test_a_changed_file_is_taken_over_and_the_host_is_told(start, pictures, command, ask):
    config = pictures()
    process = start("serve", "--config", config)
    process.initialize()
    pid = ask(process, "pics__pid")
    pictures(more_pictures(pictures))
    told(process, "notifications/tools/list_changed")
    while "more" not in names(process):
        told(process, "notifications/tools/list_changed")
    assert ask(process, "pics__pid") == pid
    other = int(ask(process, "more__pid"))
    pictures()
    told(process, "notifications/tools/list_changed")
    assert "more" not in names(process)
    while is_alive(other):
        pass
    assert ask(process, "pics__pid") == pid
    assert "upstream more removed" in command("logs").out


def test_a_broken_file_is_refused_and_the_state_before_goes_on(start, pictures, command, ask):
    config = pictures()
    process = start("serve", "--config", config)
    process.initialize()
    pid = ask(process, "pics__pid")
    config.write_text(config.read_text() + "\n[gatewy]\n")
    refused = command("reload")
    assert refused.code == 2
    assert refused.err == f"error: {config}: gatewy: unknown key (did you mean 'gateway'?)\n"
    assert "not applied: " in command("status").out
    (gateway,) = command("status", "--json").json()["gateways"]
    assert gateway["configuration"]["problem"].endswith("gatewy: unknown key (did you mean 'gateway'?)")
    assert ask(process, "pics__pid") == pid
    assert "refused, and the previous one stays in force" in command("logs").out
    pictures()
    assert command("reload").code == 0
    assert command("status", "--json").json()["gateways"][0]["configuration"]["problem"] is None


def test_reload_says_what_changed_and_what_needs_a_restart(start, pictures, command, ask):
    config = pictures()
    process = start("serve", "--config", config)
    process.initialize()
    pid = ask(process, "pics__pid")
    about, unchanged = command("reload").out.splitlines()
    assert about == f"{config} (process {process.process.pid})"
    assert re.fullmatch(r"  nothing has changed since \d\d:\d\d:\d\d, when it was last read", unchanged)
    # In one go, so that the gateway cannot notice half of it by itself.
    text = pictures.text('env = { X = "1" }\n[gateway]\nname = "other"\nprefix = "never"\n[http]\nport = 1\n')
    config.with_suffix(".new").write_text(text)
    config.with_suffix(".new").replace(config)
    command("reload")
    (gateway,) = command("status", "--json").json()["gateways"]
    assert gateway["configuration"]["restart_needed"] == ["gateway.name", "http.port"]
    again = command("reload").out
    assert again.splitlines()[1:] == [
        "  gateway.name needs a restart of the gateway",
        "  http.port needs a restart of the gateway",
    ]
    assert ask(process, "pid") not in (None, pid)
    assert "upstream pics restarted; gateway.prefix applied; gateway.name needs" in command("logs").out


def test_a_swapped_configmap_is_noticed(start, tmp_path, pictures, command):
    text = pictures().read_text()
    for version, more in (("one", ""), ("two", more_pictures(pictures))):
        (tmp_path / f"..{version}").mkdir()
        (tmp_path / f"..{version}" / "mcp-gateway.toml").write_text(text + more)
    (tmp_path / "..data").symlink_to("..one")
    (tmp_path / "mcp-gateway.toml").symlink_to("..data/mcp-gateway.toml")
    process = start("serve", "--config", tmp_path / "mcp-gateway.toml")
    process.initialize()
    assert "more" not in names(process)
    (tmp_path / "..tmp").symlink_to("..two")
    (tmp_path / "..tmp").replace(tmp_path / "..data")
    while "more" not in names(process):
        told(process, "notifications/tools/list_changed")


def test_without_a_file_there_is_nothing_to_reload(start, command):
    process = start("serve", "--http", "--port", "0", "--", sys.executable, "-c", "input()")
    process.line_with("listening on")
    while not command("status", "--json").json()["gateways"]:
        pass
    refused = command("reload", "--json")
    assert refused.code == 2
    assert "started without a configuration file" in refused.json()["gateways"][0]["problem"]


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
