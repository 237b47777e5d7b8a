"""`headers_from_claims` of an upstream: what is taken, and the line for everything that is wrong."""

from pathlib import Path

import pytest

from gateway.config.load_settings import load_settings
from gateway.errors import ConfigError

ISSUERS = "".join(
    f'[access.issuers.{name}]\nissuer = "https://{name}.example.com/"\naudience = ["gateway"]\n'
    for name in ("house", "partners")
)
UPSTREAM = '[upstreams.x]\nurl = "https://x.example.com/mcp"\n'


def load(folder: Path, text: str) -> dict[str, str]:
    path = folder / "mcp-gateway.toml"
    path.write_text(text, encoding="utf-8")
    return load_settings(path, environ={}).settings.upstreams["x"].headers_from_claims


@pytest.mark.parametrize(
    "text",
    [
        UPSTREAM + 'headers_from_claims = { X-User = "principal" }',
        UPSTREAM + 'headers_from_claims = { X-User = "sub" }\nclaims_from = "partners"\n' + ISSUERS,
    ],
    ids=["without-issuers", "with-one-of-several"],
)
def test_headers_are_read(tmp_path: Path, text: str) -> None:
    assert set(load(tmp_path, text)) == {"X-User"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (UPSTREAM + 'headers_from_claims = { X-User = "sub" }', "there are none: use 'principal'"),
        (UPSTREAM + 'headers_from_claims = { X-User = "sub" }\n' + ISSUERS, "name the one that counts in claims_from"),
        (
            UPSTREAM + 'headers_from_claims = { X-User = "sub" }\nclaims_from = "home"\n' + ISSUERS,
            "no issuer 'home' in [access.issuers] (there are: house, partners)",
        ),
        (UPSTREAM + 'claims_from = "house"\n' + ISSUERS, "claims_from needs headers_from_claims"),
        (UPSTREAM + 'headers_from_claims = { "X User" = "principal" }', "not the name of a header"),
        (UPSTREAM + 'headers_from_claims = { "X-User\\r\\nX" = "principal" }', "not the name of a header"),
        (UPSTREAM + 'headers_from_claims = { Authorization = "principal" }', "it means something else"),
        (UPSTREAM + 'headers_from_claims = { Mcp-Session-Id = "principal" }', "it means something else"),
        (UPSTREAM + 'headers_from_claims = { X-User = "principal", x-user = "principal" }', "upper and lower case"),
        (UPSTREAM + 'headers_from_claims = { X-User = "" }', "headers_from_claims"),
        (
            UPSTREAM + 'headers = { x-user = "me" }\nheaders_from_claims = { X-User = "principal" }',
            "either headers.x-user or headers_from_claims.x-user",
        ),
        ('[upstreams.x]\ncommand = "x"\nheaders_from_claims = { X-User = "principal" }', "needs a url"),
    ],
    ids=range(12),
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert message in str(caught.value)
