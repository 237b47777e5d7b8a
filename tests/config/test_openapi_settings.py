"""An HTTP API in the configuration: where its document is, and what of it is a secret."""

from pathlib import Path

import pytest

from gateway.config.load_settings import load_settings
from gateway.config.secrets import upstream_secrets
from gateway.telemetry.audit.upstream_identity import identity_of
from gateway.upstream.catalogues import Catalogues
from gateway.upstream.pin_files import pins_path

CONFIG = """
[upstreams.file]
openapi = "apis/pets.yaml"
base_url = "https://pets.example/v1"
[upstreams.file.operations]
query = { api_key = "${KEY}" }
max_document = "2MiB"
refresh = "1m"

[upstreams.url]
openapi = "https://pets.example/openapi.json?token=of-the-document"
"""


@pytest.fixture
def upstreams(tmp_path: Path):
    file = tmp_path / "mcp-gateway.toml"
    file.write_text(CONFIG)
    return load_settings(file, environ={"KEY": "key-of-mine"}).settings.upstreams


def test_a_file_is_relative_to_the_configuration_and_a_url_stays(upstreams, tmp_path: Path) -> None:
    assert upstreams["file"].openapi == str(tmp_path / "apis" / "pets.yaml")
    assert upstreams["url"].openapi.startswith("https://pets.example/")
    assert [upstreams[name].endpoint for name in ("file", "url")] == [
        "https://pets.example/v1",
        upstreams["url"].openapi,
    ]
    assert [one.transport_name for one in upstreams.values()] == ["openapi", "openapi"]
    operations = upstreams["file"].operations
    assert (operations.max_document, operations.refresh) == (2 * 1024 * 1024, 60)


def test_keys_in_queries_are_secrets(upstreams) -> None:
    assert "key-of-mine" in set(upstream_secrets(upstreams["file"]))
    assert "of-the-document" in set(upstream_secrets(upstreams["url"]))
    assert identity_of(upstreams["url"], None) == {"url": "https://pets.example/openapi.json"}


def test_another_document_is_another_server(upstreams, tmp_path: Path) -> None:
    first, second = upstreams["file"], upstreams["file"].model_copy(update={"openapi": "/other.yaml"})
    catalogues = Catalogues(tmp_path)
    assert catalogues.path(first) != catalogues.path(second)
    assert pins_path(tmp_path, "x", first) != pins_path(tmp_path, "x", second)
    selected = first.model_copy(update={"operations": first.operations.model_copy(update={"tags": ("a",)})})
    assert catalogues.path(first) != catalogues.path(selected)
    assert pins_path(tmp_path, "x", first) == pins_path(tmp_path, "x", selected)
