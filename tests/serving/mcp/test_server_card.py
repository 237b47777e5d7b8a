"""The server card and the AI catalog (SEP-2127), on a whole HTTP side that is asked in process."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from pydantic import ValidationError
from starlette.testclient import TestClient

from gateway.config.experimental_settings import ServerCardSettings
from gateway.config.http_settings import HttpSettings
from gateway.config.schema import Settings
from gateway.content.links.base_url import Bases
from gateway.core.model.revisions import REVISIONS
from gateway.serving.mcp.handshake import Identity
from gateway.serving.mcp.http import http_app
from gateway.serving.mcp.server_card import CARD_PATH, CATALOG_PATH, Discovery
from tests.servers.downstream_service import SampleService

HERE = "http://127.0.0.1:8484"
NAME = "com.example.tools/all-of-them"
TOKEN = {"Authorization": "Bearer sesame"}


@contextmanager
def asked(
    public_url: str | None = None, root_path: str = "", *, card: bool = True, **settings: Any
) -> Generator[TestClient]:
    discovery = Discovery(ServerCardSettings(name=NAME, **settings), "3.1", REVISIONS) if card else None
    app = http_app(
        SampleService(),
        HttpSettings(token="sesame"),
        Identity("sample", "3.1"),
        bases=Bases(root_path),
        public_url=public_url,
        discovery=discovery,
    )
    with TestClient(app, base_url=HERE) as client:
        yield client


def test_the_card_says_what_the_server_is_and_where_and_names_no_tool():
    with asked(title="All of them") as client:
        got = client.get(CARD_PATH, headers=TOKEN)
    assert got.headers["content-type"] == "application/mcp-server-card+json"
    assert got.json() == {
        "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
        "name": NAME,
        "version": "3.1",
        "description": "The tools of several MCP servers in one place",
        "title": "All of them",
        "remotes": [
            {"type": "streamable-http", "url": f"{HERE}/mcp", "supportedProtocolVersions": list(REVISIONS)},
        ],
    }


def test_the_catalog_leads_to_the_card():
    with asked("https://tools.example.com/gateway", "/gateway") as client:
        got = client.get(f"/gateway{CATALOG_PATH}", headers={**TOKEN, "Host": "tools.example.com"})
        assert got.headers["content-type"] == "application/ai-catalog+json"
        (entry,) = got.json()["entries"]
        assert entry == {
            "identifier": "urn:air:tools.example.com:mcp:all-of-them",
            "type": "application/mcp-server-card+json",
            "url": "https://tools.example.com/gateway/mcp/server-card",
        }
        path = entry["url"].removeprefix("https://tools.example.com")
        card = client.get(path, headers={**TOKEN, "Host": "tools.example.com"}).json()
    assert card["remotes"][0]["url"] == "https://tools.example.com/gateway/mcp"


@pytest.mark.parametrize("path", [CARD_PATH, CATALOG_PATH])
def test_who_may_not_ask_the_gateway_is_not_told(path: str):
    with asked() as client:
        assert client.get(path).status_code == 401
        foreign = client.get(path, headers={**TOKEN, "Origin": "https://page.example"})
        assert foreign.status_code == 403
        assert client.get(path, headers=TOKEN).headers["cache-control"].startswith("private")


@pytest.mark.parametrize("path", [CARD_PATH, CATALOG_PATH])
def test_a_public_document_is_for_anybody_and_for_every_page(path: str):
    origin = {"Origin": "https://page.example"}
    with asked("https://tools.example.com", public=True) as client:
        got = client.get(path, headers={**origin, "Host": "whatever.example"})
        assert got.status_code == 200
        assert "whatever.example" not in got.text  # what anybody can send is in nobody's answer
        assert got.headers["access-control-allow-origin"] == "*"
        assert got.headers["cache-control"] == "public, max-age=3600"
        asking = client.options(path, headers={**origin, "Access-Control-Request-Headers": "if-none-match"})
        assert (asking.status_code, asking.headers["access-control-allow-headers"]) == (
            204,
            "Content-Type, If-None-Match",
        )
        # Nothing else is open because of it.
        assert client.get("/mcp/server-card/more").status_code in (401, 403, 421)
        assert client.post(path, headers=origin).status_code == 403
        assert client.post("/mcp", json={}).status_code == 401


def test_an_unchanged_document_is_not_sent_again():
    with asked("https://tools.example.com", public=True) as client:
        etag = client.get(CARD_PATH).headers["etag"]
        for sent in (etag, f"W/{etag}", f'"other", {etag}', "*"):
            again = client.get(CARD_PATH, headers={"If-None-Match": sent})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
        assert client.get(CARD_PATH, headers={"If-None-Match": '"other"'}).status_code == 200


def test_without_the_setting_there_is_none():
    with asked(card=False) as client:
        assert client.get(CATALOG_PATH, headers=TOKEN).status_code == 404
        # It is a profile's name then, as it always was.
        assert "server-card" in client.get(CARD_PATH, headers=TOKEN).text


def test_a_public_card_needs_an_address_of_its_own():
    card = {"name": NAME, "public": True}
    with pytest.raises(ValidationError, match=r"gateway\.public_url"):
        Settings.model_validate({"experimental": {"server_card": card}})
    Settings.model_validate(
        {"experimental": {"server_card": card}, "gateway": {"public_url": "https://tools.example.com"}}
    )


@pytest.mark.parametrize("name", ["tools", "com.example/", "/tools", "com.example/a/b", "com example/tools"])
def test_a_name_is_a_domain_backwards_and_a_name(name: str):
    with pytest.raises(ValidationError):
        ServerCardSettings(name=name)
