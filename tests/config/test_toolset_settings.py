"""The tables `[toolsets]`: what is refused at load, and in which words."""

import pytest

from gateway.config.load_settings import load_settings
from gateway.errors import ConfigError

SERVERS = '[upstreams.github]\ncommand = "github"\n[upstreams.mail]\ncommand = "mail"\n'


@pytest.fixture
def loaded(tmp_path):
    def load(text: str):
        file = tmp_path / "mcp-gateway.toml"
        file.write_text(SERVERS + text, "utf-8")
        return load_settings(file, environ={}).settings

    return load


def test_a_toolset_is_what_its_table_says(loaded):
    settings = loaded('[toolsets.work]\nupstreams = ["git*"]\ntools = ["mail__send"]\nexclude = ["github__delete_*"]\n')
    scope = settings.toolsets["work"].scope("work")
    assert scope.has_tool("github", "merge")
    assert scope.has_tool("mail", "send")
    assert not scope.has_tool("github", "delete_repository")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("[toolsets.work]\n", "names nothing: give upstreams, tools, prompts or resources"),
        ('[toolsets.work]\nexclude = ["mail__send"]\n', "names nothing: give upstreams"),
        (
            '[toolsets.work]\nupstreams = ["gihub"]\ntools = ["wiki__*"]\n',
            "toolsets.work names nothing: 'gihub', 'wiki__*' match no upstream; the upstreams are: github, mail",
        ),
        ('[toolsets.work]\ntools = ["send"]\n', "'send' has no upstream: patterns are UPSTREAM__NAME"),
        ('[toolsets.work]\nresources = ["file:///srv/*"]\n', "'file:///srv/*' has no upstream"),
        ('[toolsets."a/b"]\nupstreams = ["*"]\n', "is not a name for a toolset"),
        ('[toolsets.work]\nserver = ["mail"]\n', "unknown key"),
    ],
)
def test_what_cannot_be_meant_is_an_error(loaded, table, words):
    with pytest.raises(ConfigError) as caught:
        loaded(table)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "table",
    [
        '[access.tokens.alice]\ntoken = "alice-alice-alice-alice"\ntoolset = "wrk"\n',
        '[access.issuers.house]\nissuer = "https://login.example.com"\naudience = ["g"]\ntoolset = "wrk"\n',
        f'[access.people.alice]\ntoolset = "wrk"\nhash = "scrypt:16384:{"a" * 22}:{"b" * 43}"\n',
    ],
)
def test_whoever_has_one_that_does_not_exist_is_named(loaded, table):
    with pytest.raises(ConfigError, match=r"access\.\w+\.\w+\.toolset: there is no toolset 'wrk'; did you mean 'work'"):
        loaded(f'[toolsets.work]\nupstreams = ["mail"]\n{table}')
