"""The shipped mcp-gateway.toml: it is valid, names the examples, and the defaults it shows are the real ones."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from gateway.config.schema import Settings
from gateway.config.section import Section
from gateway.config.upstream_settings import UpstreamSettings

FILE = Path(__file__).resolve().parents[2] / "mcp-gateway.toml"
NO_DEFAULT = {
    "gateway.profile",
    "gateway.instructions",
    "gateway.public_url",
    "http.token",
    "http.tls_certificate",
    "http.tls_key",
    "content.key",
}
NO_DEFAULT |= {"gateway.model", "store.max_bytes_per_owner", "store.key", "files.dir"}
NO_DEFAULT |= {"model_proxy.to", "model_proxy.token", "model_proxy.profile"}
NO_DEFAULT |= {"policy.rules", "http.tls_certificate", "http.tls_key"}
OF_AN_UPSTREAM = {"command", "url", "args", "cwd", "session", "pins", "auth", "headers_from_claims", "claims_from"}
OF_AN_UPSTREAM |= {"registry", "openapi", "base_url", "operations", "replay"}
"""Keys that show a value although they are left out by default: of the sections, and of an upstream."""


def shown_defaults() -> dict[str, dict[str, Any]]:
    """The file with every commented-out line put back in, as tables."""
    text = FILE.read_text(encoding="utf-8")
    return tomllib.loads(re.sub(r"^# (?=\[|[a-z_]+ = )", "", text, flags=re.MULTILINE))


def test_the_shipped_config_is_valid_and_has_one_upstream_for_each_transport() -> None:
    settings = Settings.model_validate(tomllib.loads(FILE.read_text(encoding="utf-8")))
    assert list(settings.upstreams) == ["charts", "documents", "sounds"]
    charts, documents, sounds = settings.upstreams.values()
    assert (charts.command, charts.args) == ("${MCP_GATEWAY_PYTHON}", ("-m", "examples.charts"))
    assert (documents.url, documents.transport) == ("http://127.0.0.1:8701/mcp", "auto")
    assert (sounds.url, sounds.transport) == ("http://127.0.0.1:8702/sse", "sse")


def test_the_shipped_config_is_valid_with_everything_put_back_in() -> None:
    settings = Settings.model_validate(shown_defaults())
    assert set(settings.upstreams) == {"charts", "documents", "sounds", "files", "pets", "yesterday"}
    assert set(settings.profiles) == {"my-host"}


SECTIONS = ["gateway", "http", "policy", "pins", "model_proxy", "store", "content", "fetch", "media", "files", "limits"]
SECTIONS += ["logging"]


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_shows_every_key_with_its_default(name: str) -> None:
    shown = shown_defaults()[name]
    section = getattr(Settings(), name)
    assert isinstance(section, Section)
    defaults = section.model_dump(mode="json")
    assert set(shown) == set(defaults)
    for key, value in shown.items():
        if f"{name}.{key}" not in NO_DEFAULT:
            assert value == defaults[key], key


def test_the_upstreams_show_every_key_with_its_default() -> None:
    upstreams = shown_defaults()["upstreams"]
    shown = {**upstreams["yesterday"], **upstreams["pets"], **upstreams["documents"], **upstreams["charts"]}
    assert set(shown) == set(UpstreamSettings.model_fields)
    defaults = UpstreamSettings(command="x").model_dump(mode="json")
    for key in set(shown) - OF_AN_UPSTREAM:
        assert shown[key] == defaults[key], key
