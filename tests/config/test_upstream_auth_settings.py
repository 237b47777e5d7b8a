"""How an upstream's login is configured, and what is said of a configuration that does not fit together."""

from pathlib import Path
from typing import Any

import pytest

from gateway.config.load_settings import load_settings
from gateway.config.secrets import upstream_secrets
from gateway.config.upstream_settings import UpstreamSettings
from gateway.errors import ConfigError

CLIENT = {"client_id": "us", "client_secret": "s3cret"}


@pytest.mark.parametrize(
    ("auth", "why"),
    [
        ({"client_secret": "s3cret"}, "need client_id"),
        ({**CLIENT, "private_key": "key"}, "either client_secret or private_key"),
        ({"grant": "client_credentials", "client_id": "us"}, "needs client_id, and client_secret or private_key"),
        ({"grant": "jwt_bearer"}, "assertion_file and grant = 'jwt_bearer' need each other"),
        ({"assertion_file": "token"}, "assertion_file and grant = 'jwt_bearer' need each other"),
        ({"grant": "token_exchange"}, "exchange and grant = 'token_exchange' need each other"),
        ({**CLIENT, "client_authentication": "private_key_jwt"}, "needs private_key"),
        ({"client_id": "us", "client_authentication": "client_secret_post"}, "needs client_secret"),
        ({"issuer": "https://user@login.example.com"}, "issuer"),
        ({"client_metadata_url": "http://example.com/client.json"}, "client_metadata_url"),
        ({"scopes": ["two words"]}, "scopes"),
        ({"callback_port": 0}, "callback_port"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(auth: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        UpstreamSettings.model_validate({"url": "https://x.example.com/mcp", "auth": auth})


@pytest.mark.parametrize(
    ("upstream", "why"),
    [
        ({"command": "server", "auth": {}}, "auth needs a url"),
        ({"url": "https://x", "headers": {"authorization": "Bearer x"}, "auth": {}}, "either auth or headers"),
    ],
)
def test_a_login_needs_an_upstream_that_has_room_for_it(upstream: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        UpstreamSettings.model_validate(upstream)


def test_an_error_names_the_key(tmp_path: Path) -> None:
    file = tmp_path / "mcp-gateway.toml"
    file.write_text('[upstreams.x]\nurl = "https://x.example.com"\n[upstreams.x.auth]\ngrand = "x"\n', "utf-8")
    with pytest.raises(ConfigError, match=r"upstreams\.x\.auth\.grand"):
        load_settings(file, environ={})


def test_secrets_are_known_and_files_are_relative_to_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("the-client-secret\n", "utf-8")
    file = tmp_path / "mcp-gateway.toml"
    file.write_text(
        '[upstreams.x]\nurl = "https://x.example.com"\n'
        '[upstreams.x.auth]\nclient_id = "us"\nclient_secret = "${file:secret}"\n'
        '[upstreams.y]\nurl = "https://y.example.com"\n'
        '[upstreams.y.auth]\ngrant = "jwt_bearer"\nassertion_file = "token"\n',
        "utf-8",
    )
    upstreams = load_settings(file, environ={}).settings.upstreams
    assert "the-client-secret" in set(upstream_secrets(upstreams["x"]))
    assert upstreams["y"].auth is not None
    assert upstreams["y"].auth.assertion_file == tmp_path / "token"
