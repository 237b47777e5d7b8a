"""Secrets in the text of a configuration are hidden, and everything else stays."""

import json
import tomllib

import pytest

from gateway.config.mask_toml import masked_configuration

TEXT = """\
# mine
[upstreams.a]
command = "npx"
args = ["-y", "x", "--api-key", "arg-secret-1", "--token=arg-secret-2", "--verbose", "word"]
env = { API_TOKEN = "env-secret-3", PLAIN = "value", REF = "x", MY_KEY = "${MY_KEY}", D = "1" } # mine
[upstreams.b]
url = "https://me:url-secret-4@h/mcp?api_key=url-secret-5&q=word"
headers = { Authorization = "Bearer header-secret-6", X-Odd = 'header-secret-7', R = "Bearer ${keyring:x}" }
[http]
token = '''many
lines-secret-8'''
[access.tokens.a]
token = "quote\\"secret-9"
"""


def test_secrets_are_hidden_and_the_rest_stays() -> None:
    masked = masked_configuration(TEXT)
    assert "secret" not in masked
    assert tomllib.loads(masked)["upstreams"]["a"]["args"][-2:] == ["--verbose", "word"]
    for kept in (
        "# mine",
        'PLAIN = "value"',
        "${MY_KEY}",
        "Bearer ${keyring:x}",
        "@h/mcp",
        "q=word",
        "[access.tokens.a]",
    ):
        assert kept in masked


def test_known_secrets_are_hidden_wherever_they_stand() -> None:
    assert masked_configuration("# was known-1\nx = 1\n", ["known-1"]) == "# was ***\nx = 1\n"
    assert masked_configuration("is [not toml known-1", ["known-1"]) == "is [not toml ***"


def test_json_is_masked_as_well() -> None:
    text = json.dumps({"mcpServers": {"a": {"command": "x", "env": {"MY_TOKEN": "json-secret-1"}}}})
    assert json.loads(masked_configuration(text))["mcpServers"]["a"] == {"command": "x", "env": {"MY_TOKEN": "***"}}


@pytest.mark.parametrize("value", ["a", "ab", "x" * 100_000, "\\", "\u202e\u00e9", "${A:-default-secret}", "${A}tail"])
def test_odd_secrets_are_hidden(value: str) -> None:
    text = f"[upstreams.a]\ncommand = 'c'\nenv = {{ TOKEN = {json.dumps(value, ensure_ascii=False)} }}\n"
    assert tomllib.loads(masked_configuration(text))["upstreams"]["a"] == {"command": "c", "env": {"TOKEN": "***"}}
