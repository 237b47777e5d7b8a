"""What a relay has to understand: the beginning of a message, its variables, and its command line."""

import json
from pathlib import Path

import pytest

from gateway.cli.main import relay_options, starts_stdio
from gateway.serving.control.protocol import MAX_REQUEST_BYTES
from gateway.serving.shared.attach import differing, fingerprints, shared_key, variables_in
from gateway.serving.shared.attachment import head_of
from gateway.serving.shared.relay_options import RelayOptions


@pytest.mark.parametrize(
    ("line", "kind", "id"),
    [
        (b'{"jsonrpc":"2.0","id":5,"result":{"id":6,"method":"x"}}', "answer", 5),
        (b'{"jsonrpc":"2.0","id":-5,"error":{}}', "answer", -5),
        (b'{"jsonrpc":"2.0","id":"a","result":{}}', "answer", "a"),
        (b'{"jsonrpc":"2.0","id":"a\\"b","result":{}}', "answer", 'a"b'),
        ('{"jsonrpc":"2.0","id":"é","result":{}}'.encode(), "answer", "é"),
        (b'{"jsonrpc":"2.0","id":3,"method":"roots/list"}', "request", 3),
        (b'{"jsonrpc":"2.0","id":"s","method":"roots/list"}', "request", "s"),
        (b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"id":3}}', "notification", None),
        (b'{"result":{},"id":9,"jsonrpc":"2.0"}', "answer", 9),
        (b'{"method":"roots/list","id":9,"jsonrpc":"2.0"}', "request", 9),
        (b'{"jsonrpc":"2.0","id":"never ends', "notification", None),
        (b"[" * 100_000, "notification", None),
        (b"", "notification", None),
    ],
)
def test_the_beginning_of_a_message_says_what_it_is(line, kind, id):
    assert head_of(line + b"\n") == (kind, id)


def test_variables_are_compared_without_being_told(tmp_path):
    config = tmp_path / "c.toml"
    config.write_text('[upstreams.x]\ncommand = "${A}"\nenv = { B = "${B:-b}", C = "${file:c}" }\n')
    assert variables_in(config) == {"A", "B"}
    assert variables_in(tmp_path / "missing.toml") == frozenset()
    told = fingerprints(["A", "B", "D"], {"A": "one", "B": "same"}, "salt")
    assert differing(told, {"A": "two", "B": "same"}, "salt") == ["A"]
    assert differing(told, {"A": "one", "B": "same", "D": ""}, "salt") == ["D"]
    assert "one" not in json.dumps(told)


def test_a_configuration_with_very_many_variables_can_still_be_shared():
    names = [f"{number:03}{'X' * length}" for number in range(1_000) for length in (1, 57, 100)]
    told = fingerprints(names, dict.fromkeys(names, "x"), "salt")
    assert 0 < len(json.dumps(told)) < MAX_REQUEST_BYTES - 2_000


def test_the_key_depends_on_all_that_makes_another_gateway():
    here = Path("/a/c.toml")
    keys = {shared_key(here, {}), shared_key(Path("/b/c.toml"), {}), shared_key(here, {"MCP_GATEWAY_STATE": "/s"})}
    assert len(keys) == 3
    assert shared_key(here, {"OTHER": "x"}) in keys


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("serve --shared", RelayOptions()),
        ("serve --shared --config a.toml", RelayOptions(Path("a.toml"))),
        ("serve --config=a.toml --shared --profile p --model=m", RelayOptions(Path("a.toml"), "p", "m")),
        ("serve --config a.toml", None),
        ("--debug serve --shared", None),
        ("serve --shared --shared", None),
        ("serve --shared --config", None),
        ("serve --shared --config --profile", None),
        ("serve --shared --profile a --profile b", None),
        ("serve --shared --calibrate", None),
        ("serve --shared -- python", None),
        ("tools --shared", None),
        ("", None),
    ],
)
def test_a_command_line_that_is_only_about_the_host_is_understood_by_hand(words, options):
    assert relay_options(words.split()) == options


def test_the_process_of_a_shared_gateway_itself_serves_nobody_on_stdio():
    assert starts_stdio(["serve", "--shared"])
    assert not starts_stdio(["serve", "--shared", "--resident"])
