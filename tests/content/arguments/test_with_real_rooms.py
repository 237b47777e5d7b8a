"""Arguments over a store that outlives the gateway, and over the links that the HTTP side gives."""

import base64
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from gateway.config.content_settings import LimitSettings
from gateway.config.store_settings import StoreSettings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.content.arguments import Arguments, TemporaryFiles
from gateway.content.links.links import Links
from gateway.content.store.open_store import open_store
from gateway.core.tools.arguments import Parameter
from gateway.errors import ArgumentError

pytestmark = pytest.mark.anyio

OWN = UpstreamSettings.model_validate({"url": "http://127.0.0.1:1/mcp", "accept": "own"})


@pytest.mark.parametrize("kind", ["memory", "file"])
async def test_where_content_came_from_is_known_in_every_store_and_the_first_stays(kind: str, tmp_path: Path):
    settings = StoreSettings(url="memory://" if kind == "memory" else tmp_path.as_uri())
    async with open_store(settings) as store:
        first = await store.put(b"x", owner="ann", media_type="text/plain", origin="charts")
        await store.put(b"x", owner="ann", media_type="text/plain", origin="other")
        mine = await store.put(b"y", owner="ann", media_type="text/plain")
        assert (await store.metadata(first.handle, owner="ann")).origin == "charts"
        assert [stored.origin for stored in await store.list(owner="ann")] == ["charts", None]
        arguments = Arguments(store, LimitSettings(), TemporaryFiles(None))
        parameter = Parameter(("x",), "base64")
        resolved = arguments.resolved({"x": mine.handle}, [parameter], owner="ann", upstream="studio", settings=OWN)
        async with resolved as given:
            assert base64.b64decode(given["x"]) == b"y"
        with pytest.raises(ArgumentError, match="came from charts"):
            async with arguments.resolved(
                {"x": first.handle}, [parameter], owner="ann", upstream="studio", settings=OWN
            ):
                pass


async def test_a_link_is_offered_once_the_http_side_is_there_and_opens_the_content_of_its_owner():
    async with open_store(StoreSettings()) as store:
        stored = await store.put(b"%PDF-", owner="ann", media_type="application/pdf")
        links = Links(60)
        arguments = Arguments(store, LimitSettings(), TemporaryFiles(None), links=links)
        assert not arguments.giving(OWN).links
        links.serve_at("https://gateway.example", b"a key")
        assert arguments.giving(OWN).links
        resolved = arguments.resolved(
            {"x": stored.handle}, [Parameter(("x",), "url", "document")], owner="ann", upstream="studio", settings=OWN
        )
        async with resolved as given:
            parts = urlsplit(given["x"])
        assert parts.geturl().startswith(f"https://gateway.example/content/{stored.handle}?")
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        assert links.owner(stored.handle, query["expires"], query["signature"]) == "ann"
