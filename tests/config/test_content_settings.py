"""What may be written about content: links, proxies, folders and what is fetched."""

import pytest
from pydantic import ValidationError

from gateway.config.content_settings import FetchSettings
from gateway.config.gateway_settings import GatewaySettings
from gateway.config.http_settings import HttpSettings
from gateway.config.load_settings import load_settings
from gateway.config.schema import Settings
from gateway.config.secrets import all_secrets
from gateway.errors import ConfigError


@pytest.mark.parametrize(
    "pattern",
    [
        "https://images.example.com",
        "https://images.example.com/a/*/b*",
        "https://*.example.com:8443/",
        "http://127.0.0.1:9000/*",
        "http://[::1]:9000/x",
        "https://bücher.example/*",
    ],
)
def test_patterns_of_urls_may_be_written(pattern):
    assert FetchSettings(allow=(pattern,)).allow == (pattern,)


@pytest.mark.parametrize(
    "pattern",
    [
        "*",
        "https://*",
        "https://*/x",
        "https://images.*.com/",
        "https://ima*.example.com/",
        "http*://example.com/",
        "ftp://example.com/",
        "images.example.com",
        "https://user@example.com/",
        "https://example.com/?key=*",
        "https://example.com:http/",
        "https://exa mple.com/",
        "",
    ],
)
def test_patterns_that_would_allow_more_than_they_seem_to_are_refused_without_being_repeated(pattern):
    with pytest.raises(ValidationError, match="entry 2 is not a pattern"):
        FetchSettings(allow=("https://images.example.com", pattern))


@pytest.mark.parametrize(
    "url", ["gw.example.com", "ftp://gw", "https://u:p@gw", "https://gw?x", "https://gw/#x", "http://"]
)
def test_a_public_url_is_an_address_that_others_can_be_below(url):
    with pytest.raises(ValidationError):
        GatewaySettings(public_url=url)


@pytest.mark.parametrize("path", ["/", "gw", "/gw/", "/g w", "//gw", "/gw?x"])
def test_a_root_path_is_a_plain_path(path):
    with pytest.raises(ValidationError):
        GatewaySettings(root_path=path)


def test_proxies_are_addresses_or_networks():
    assert HttpSettings(trusted_proxies=("127.0.0.1", "10.0.0.0/8", "::1")).trusted_proxies[1] == "10.0.0.0/8"
    with pytest.raises(ValidationError, match="entry 1 is neither an address nor a network"):
        HttpSettings(trusted_proxies=("proxy.lan",))


def test_folders_are_relative_to_the_file_and_the_key_is_a_secret(tmp_path):
    path = tmp_path / "mcp-gateway.toml"
    path.write_text('[content]\nkey = "a key of sixteen characters"\nfolders = ["in", "/srv/in", "~/in"]\n')
    settings = load_settings(path, environ={"HOME": "/home/ann"}).settings
    assert [str(folder) for folder in settings.content.folders] == [str(tmp_path / "in"), "/srv/in", "/home/ann/in"]
    assert "a key of sixteen characters" in set(all_secrets(settings))
    path.write_text('[content]\nkey = "short"\n')
    with pytest.raises(ConfigError, match=r"content\.key") as wrong:
        load_settings(path, environ={})
    assert "'short'" not in str(wrong.value)


def test_nothing_is_fetched_by_default():
    assert Settings().fetch.allow == ()
