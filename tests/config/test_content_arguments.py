"""Arguments that take content, as mcp-gateway.toml names them."""

import tomllib

import pytest

from gateway.config.schema import Settings
from gateway.config.settings_diff import needs_restart
from gateway.config.validation import validate

START = '[upstreams.x]\ncommand = "a"\n'


def read(text: str) -> Settings:
    return Settings.model_validate(tomllib.loads(text))


def test_they_are_written_below_their_tool_or_in_one_table():
    below = read(
        START
        + '[upstreams.x.tools.trace.content]\nphoto = "image"\n"items[].scan" = { kind = "any", as = "path" }\n'
        + '[upstreams.x.tools.content]\nother = { file = { as = "data-uri" } }\n'
    )
    content = below.upstreams["x"].tools.content
    told = {(tool, path): (said.kind, said.form) for tool, paths in content.items() for path, said in paths.items()}
    assert told == {
        ("trace", "photo"): ("image", None),
        ("trace", "items[].scan"): ("any", "path"),
        ("other", "file"): (None, "data-uri"),
    }
    together = read(
        START
        + '[upstreams.x.tools.content]\ntrace = { photo = "image", "items[].scan" = { kind = "any", as = "path" } }\n'
        'other = { file = { as = "data-uri" } }\n'
    )
    assert together == below


@pytest.mark.parametrize(
    ("text", "where", "words"),
    [
        (f'{START}[upstreams.x.tools.t.content]\np = "pic"\n', "kind", "must be 'image'"),
        (f'{START}[upstreams.x.tools.t.content]\np = {{ as = "file" }}\n', "as", "must be 'base64'"),
        (f'{START}[upstreams.x.tools.t.content]\np = {{ kid = "image" }}\n', "kid", "unknown key"),
        (f"{START}[upstreams.x.tools.t]\ncontents = {{}}\n", "t", "unknown key"),
        (f'{START}accept = "others"\n', "accept", "must be 'any', 'own' or 'none'"),
        (
            '[upstreams.x]\nurl = "http://x"\n[upstreams.x.tools.t.content]\np = { as = "path" }\n',
            "x",
            'as = "path" needs a command',
        ),
    ],
)
def test_what_is_wrong_is_said(text: str, where: str, words: str):
    settings, (problem,) = validate(Settings, tomllib.loads(text))
    assert settings is None
    assert problem.location[-1] == where
    assert words in problem.what


def test_an_upstream_takes_them_over_without_being_started_anew():
    plain = read(START).upstreams["x"]
    changed = read(f'{START}accept = "own"\n[upstreams.x.tools.t.content]\np = "image"\n').upstreams["x"]
    assert not needs_restart(plain, changed)
