"""Where the demo finds its parts, and the configuration that it runs."""

import socket
import sys
import tomllib
from pathlib import Path

from gateway.cli.demo.cases import CASES
from gateway.cli.demo.demo_files import demo_setting, place_config
from gateway.config.load_settings import load_settings
from gateway.config.toml_text import table_text


def test_the_demo_runs_the_shipped_configuration_with_its_own_ports_and_nothing_else_changed() -> None:
    root = Path(__file__).parents[3]
    shipped = tomllib.loads((root / "mcp-gateway.toml").read_text(encoding="utf-8"))
    with demo_setting() as setting:
        used = tomllib.loads(setting.config.read_text(encoding="utf-8"))
        assert used == place_config(shipped, setting)
        assert used["upstreams"].keys() == shipped["upstreams"].keys()
        for upstream in used["upstreams"].values():
            for key in ("command", "args", "cwd", "url"):
                upstream.pop(key, None)
        for upstream in shipped["upstreams"].values():
            for key in ("command", "args", "cwd", "url"):
                upstream.pop(key, None)
        assert used == shipped
    assert not setting.config.exists()


def test_the_gateway_accepts_the_configuration_and_finds_one_upstream_for_each_transport() -> None:
    with demo_setting() as setting:
        upstreams = load_settings(setting.config, environ={}).settings.upstreams
        assert upstreams["charts"].command == sys.executable
        assert (upstreams["documents"].url, upstreams["sounds"].url) == (setting.documents_url, setting.sounds_url)
        assert {case.upstream for case in CASES} == set(upstreams)


def test_the_ports_are_free_and_differ() -> None:
    with demo_setting() as setting:
        ports = {setting.documents_port, setting.sounds_port, setting.gateway_port}
        assert len(ports) == 3
        for port in ports:
            socket.create_server(("127.0.0.1", port)).close()


def test_toml_is_written_so_that_it_reads_the_same() -> None:
    document = {
        "gateway": {"name": 'a "quoted" name\n', "ratio": 0.5, "on": True, "list": [1, [2, "x"], {"k": "é"}]},
        "upstreams": {"a b": {"env": {"K.L": "${X:-y}"}, "tools": {"timeout": {"t": {"call": 1.5}}}}, "empty": {}},
    }
    assert tomllib.loads(table_text((), document)) == document
