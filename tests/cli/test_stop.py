"""`mcp-gateway stop`: the end of a gateway, and of all that it started."""

import os

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Unix sockets are POSIX's")


def test_it_ends_the_gateway_with_its_upstreams_and_leaves_only_the_log(start, pictures, command, ask):
    process = start("serve", "--config", pictures())
    process.initialize()
    upstream = int(ask(process, "pics__pid"))
    log = command("status", "--json").json()["gateways"][0]["log"]
    ended = command("stop")
    assert (ended.code, ended.out) == (0, f"stopped mcp-gateway, process {process.process.pid}\n")
    assert process.wait() == 0
    with pytest.raises(ProcessLookupError):
        os.kill(upstream, 0)
    assert os.listdir(os.path.dirname(log)) == [os.path.basename(log)]


def test_several_are_stopped_one_by_one_or_all_together(start, pictures, command):
    processes = [start("serve", "--http", "--port", "0", "--config", pictures()) for _ in range(3)]
    for process in processes:
        process.line_with("listening on")
    while len(command("status", "--json").json()["gateways"]) < 3:
        pass
    assert command("stop", "--pid", str(processes[0].process.pid)).code == 0
    assert processes[0].wait() == 0
    assert command("stop", "--all").out.count("stopped mcp-gateway") == 2
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert command("stop", "--all").code == 1
