"""`[access.issuers]` in a configuration file: what is taken, and the one line for everything that is wrong."""

from pathlib import Path

import pytest

from gateway.config.load_settings import load_settings
from gateway.config.schema import Settings
from gateway.config.secrets import all_secrets
from gateway.config.validation import NAME_RULE_OF_TOKENS
from gateway.errors import ConfigError

HOUSE = '[access.issuers.house]\nissuer = "https://login.example.com/"\n'
BOUND = HOUSE + 'audience = ["gateway"]\n'


def load(folder: Path, text: str, **environ: str) -> Settings:
    path = folder / "mcp-gateway.toml"
    path.write_text(text, encoding="utf-8")
    return load_settings(path, environ=environ).settings


def test_an_issuer_is_read_with_its_tables(tmp_path: Path):
    tables = """
        introspection_url = "https://login.example.com/introspect"
        client_id = "gateway"
        client_secret = "${SECRET}"
        [access.issuers.house.claims]
        groups = "realm_access.roles"
        [access.issuers.house.groups."Team A"]
        upstreams = ["docs"]
        [access.scopes]
        "github__delete_*" = ["admin"]
    """
    settings = load(tmp_path, BOUND + tables, SECRET="a secret of the client")
    house = settings.access.issuers["house"]
    assert house.claims.groups == "realm_access.roles"
    assert house.groups["Team A"].upstreams == ("docs",)
    assert settings.access.scopes == {"github__delete_*": ("admin",)}
    assert "a secret of the client" in set(all_secrets(settings))


def test_a_public_url_is_enough_to_tell_what_tokens_are_meant_for(tmp_path: Path):
    assert load(tmp_path, '[gateway]\npublic_url = "https://tools.example.com"\n' + HOUSE).access.issuers["house"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            HOUSE,
            "issuers.house.audience: is missing "
            "(give [gateway] public_url, or the audience that its tokens for this gateway have)",
        ),
        (
            '[access.issuers.house]\nissuer = "http://login.example.com"\n',
            "issuers.house.issuer: must begin with https://, unless it is on this machine",
        ),
        (
            BOUND + 'jwks_url = "http://keys.example.com/keys"\n',
            "issuers.house.jwks_url: must begin with https://, unless it is on this machine",
        ),
        (
            BOUND + 'algorithms = ["HS256"]\n',
            "issuers.house.algorithms[0]: must be 'EdDSA', 'ES256' or 'RS256'",
        ),
        (BOUND + 'clock_skew = "1h"\n', "issuers.house.clock_skew: must be at most 300"),
        (
            BOUND + 'introspection_url = "https://login.example.com/i"\n',
            "issuers.house: introspection needs introspection_url, client_id and client_secret",
        ),
        (
            BOUND + '[access.issuers.house.claims]\ntools = "t"\n[access.issuers.house.groups.a]\n',
            "issuers.house: has groups, and claims for upstreams or tools: give one of them",
        ),
        (
            '[access.issuers."a b"]\nissuer = "https://login.example.com"\n',
            f'issuers."a b": is not a name for an issuer ({NAME_RULE_OF_TOKENS})',
        ),
    ],
)
def test_what_is_wrong_with_an_issuer_is_one_line(tmp_path: Path, text: str, message: str):
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert str(caught.value) == f"{tmp_path / 'mcp-gateway.toml'}: access.{message}"


@pytest.mark.parametrize("scope", ["", "a b", 'a\\"b', "a\\\\b", "a\\nb"])
def test_a_scope_is_one_word_that_a_header_can_have(tmp_path: Path, scope: str):
    with pytest.raises(ConfigError, match="scopes"):
        load(tmp_path, f'[access.scopes]\n"*" = ["{scope}"]\n')


def test_the_files_of_a_certificate_are_relative_to_the_configuration(tmp_path: Path):
    http = load(tmp_path, '[http]\ntls_certificate = "tls/full.pem"\ntls_key = "/etc/key.pem"\n').http
    assert (http.tls_certificate, http.tls_key) == (tmp_path / "tls/full.pem", Path("/etc/key.pem"))


def test_a_certificate_needs_its_key(tmp_path: Path):
    with pytest.raises(ConfigError, match="http: needs both tls_certificate and tls_key, or neither"):
        load(tmp_path, '[http]\ntls_key = "key.pem"\n')
