"""Secrets in the text of a configuration are hidden, and everything else stays."""

import json
import tomllib

import pytest

from gateway.config.mask_toml import masked_configuration
from gateway.config.schema import Settings
from gateway.config.secrets import all_secrets

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


@pytest.mark.parametrize(
    "name", ["GH_PAT", "PAT", "github-pat", "DB_PASS", "PGPASS_PWD", "MY_JWT", "SENTRY_DSN", "pwd"]
)
def test_variables_with_a_secret_by_their_name_are_hidden(name: str) -> None:
    text = f'[upstreams.a]\ncommand = "c"\nenv = {{ "{name}" = "gone-1234" }}\n'
    assert "gone" not in masked_configuration(text)


@pytest.mark.parametrize("name", ["PATH", "PATTERN", "COMPASS", "PASSAGE", "BYPASS_CACHE", "SPATIAL", "passenger"])
def test_variables_that_only_sound_so_stay(name: str) -> None:
    text = f'[upstreams.a]\ncommand = "c"\nenv = {{ {name} = "stays-1234" }}\n'
    assert masked_configuration(text) == text


@pytest.mark.parametrize(
    "segment",
    [
        "a1b2c3d4e5f6a7b8",
        "sk-live-Zk3jf8sLq0Pd93mXAlb2",
        "0b6f4d7e-6a0e-4a55-9b63-b2d0f3a1c111",
        "MTIzOjQ1Njc4OWFiY2RlZg==",
    ],
)
def test_what_looks_drawn_in_the_path_of_a_url_is_hidden(segment: str) -> None:
    text = f'[upstreams.a]\nurl = "https://host.example/api/{segment}/mcp"\n'
    assert masked_configuration(text) == '[upstreams.a]\nurl = "https://host.example/api/***/mcp"\n'
    settings = Settings.model_validate({"upstreams": {"a": {"url": f"https://host.example/{segment}"}}})
    assert segment in set(all_secrets(settings))


@pytest.mark.parametrize(
    "path",
    [
        *("mcp", "v1/servers/internationalisation", "2025-11-25/mcp-server", "20251125000000000000"),
        *("microsoft365calendar", "contosoproduction1/mcp", "gpt4turbopreview2024", "kubernetesv1cluster2024"),
    ],
)
def test_words_and_numbers_in_the_path_of_a_url_stay(path: str) -> None:
    text = f'[upstreams.a]\nurl = "https://host.example/{path}"\n'
    assert masked_configuration(text) == text
