"""What a 401 asks for, and what logs in already."""

import pytest

from gateway.config.logins import (
    sends_credentials,
    through_mcp_remote,
    url_behind,
    wanted_login,
)


@pytest.mark.parametrize(
    ("challenges", "wants"),
    [
        ([], None),
        ([""], None),
        (['Basic realm="x"'], None),
        (["Negotiate"], None),
        (["Bearer"], "token"),
        (['bearer realm="mcp"'], "token"),
        (['Basic realm="x", Bearer error="invalid_token"'], "token"),
        (['Bearer realm="OAuth", error="invalid_token"'], "login"),
        (['Bearer error="invalid_token", resource_metadata="https://x/.well-known/oauth-protected-resource"'], "login"),
        (["Bearer resource_metadata=https://x/y"], "login"),
        (['Basic realm="x"', 'Bearer authorization_uri="https://login.example.org"'], "login"),
        (['DPoP algs="ES256", resource_metadata="https://x"'], "login"),
        (['Basic realm="oauth"'], None),
    ],
)
def test_what_a_401_asks_for(challenges, wants):
    assert wanted_login(challenges) == wants


def test_the_url_behind_mcp_remote():
    assert url_behind(through_mcp_remote("https://x/mcp")) == "https://x/mcp"
    assert url_behind({"command": "npx", "args": ["mcp-remote@0.1.2", "https://x", "--debug"]}) == "https://x"
    assert url_behind({"command": "npx", "args": ["-y", "some-server", "https://x"]}) is None
    assert url_behind({"url": "https://x"}) is None


def test_credentials_in_headers():
    assert sends_credentials({"authorization": "x"})
    assert sends_credentials({"X-Api-Key": "x"})
    assert not sends_credentials({"X-Region": "eu"})
