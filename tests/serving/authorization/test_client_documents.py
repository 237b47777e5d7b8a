"""Hosts that are identified by the URL of a document, which the gateway fetches: also where it must not."""

import json
import threading
from collections.abc import Callable, Generator, Mapping
from typing import Any

import anyio
import pytest

from gateway.serving.authorization.client_documents import ClientDocuments, UnusableDocument
from tests.serving.authorization.conftest import REDIRECT
from tests.serving.authorization.sites import Reply, site


class Site:
    """A web site on the loopback, with a document about a client."""

    def __init__(self) -> None:
        self.asked = 0
        self.reply = Reply(404)

    def begin(self, address: str) -> None:
        self.address = address
        self.client_id = f"http://{address}/client.json"
        self.describe()

    def describe(self, **changed: Any) -> None:
        document = {"client_id": self.client_id, "client_name": "A Host", "redirect_uris": [REDIRECT], **changed}
        self.reply = Reply(body=json.dumps(document).encode())

    def answer(self, path: str, *_: Any) -> Reply:
        self.asked += 1
        return self.reply if path == "/client.json" else Reply(404)


@pytest.fixture(name="site")
def client_site() -> Generator[Site]:
    made = Site()
    with site(made.answer) as address:
        made.begin(address)
        yield made


def test_a_host_is_known_by_its_document(opened: Callable[..., Any], site: Site) -> None:
    with opened({"allow_private": [site.address]}) as gateway:
        browser = gateway.browser()
        browser.open(site.client_id)
        assert f"Comes from {site.address}" in " ".join(browser.text.split())
        browser.log_in()
        code = browser.send("approve").headers["location"].partition("code=")[2].partition("&")[0]
        tokens = gateway.exchange(site.client_id, code).json()
        assert gateway.status_of(tokens["access_token"]) == 200
        assert gateway.refresh(site.client_id, tokens["refresh_token"]).status_code == 200
        assert site.asked == 1


def test_a_document_that_offers_a_key_of_its_own_is_that_of_a_public_client(
    opened: Callable[..., Any], site: Site
) -> None:
    site.describe(token_endpoint_auth_method="private_key_jwt", jwks_uri="https://host.example/keys")
    with opened({"allow_private": [site.address]}) as gateway:
        assert gateway.status_of(gateway.tokens(site.client_id)["access_token"]) == 200


def test_a_private_address_is_not_asked(opened: Callable[..., Any], site: Site) -> None:
    port = site.address.rpartition(":")[2]
    with opened() as gateway:
        for url in (
            site.client_id,
            f"https://{site.address}/client.json",
            f"https://localhost:{port}/client.json",
            f"https://[::1]:{port}/client.json",
            f"https://[::ffff:127.0.0.1]:{port}/client.json",
            f"https://0x7f000001:{port}/client.json",
            "https://169.254.169.254/latest/meta-data",
            "https://10.0.0.1/client.json",
        ):
            answer = gateway.browser().open(url)
            assert answer.status_code == 400
            assert "href" not in answer.text
    assert site.asked == 0


@pytest.mark.parametrize(
    "url",
    [
        "https://host.example",
        "https://host.example/",
        "https://host.example/a/../client.json",
        "https://user@host.example/client.json",
        "https://host.example/client.json#x",
        "https://host.example/client.json?x=1",
        "https://host.example/*",
        "http://host.example/client.json",
        "https://[/client.json",
        "https://h\u043est.example/client.json",
        "https://host.example\\.other.example/client.json",
        f"https://host.example/{'x' * 2_000}",
    ],
)
def test_a_client_id_that_is_no_plain_url_is_refused(opened: Callable[..., Any], url: str) -> None:
    with opened() as gateway:
        answer = gateway.browser().open(url)
        assert answer.status_code == 400
        assert "the client id must be" in answer.text or "is not a URL" in answer.text


@pytest.mark.parametrize(
    "changed",
    [
        {"client_id": "https://other.example/client.json"},
        {"client_secret": "x" * 40},
        {"token_endpoint_auth_method": "client_secret_post"},
        {"redirect_uris": []},
        {"redirect_uris": ["http://host.example/callback"]},
        {"redirect_uris": "https://host.example/callback"},
        {"padding": "x" * 20_000},
    ],
)
def test_a_document_that_cannot_be_used_is_refused(opened: Callable[..., Any], site: Site, changed: Any) -> None:
    site.describe(**changed)
    with opened({"allow_private": [site.address]}) as gateway:
        assert gateway.browser().open(site.client_id).status_code == 400


@pytest.mark.parametrize(
    "answer",
    [
        (200, {}, b"<html>"),
        (200, {}, b"[" * 10_000),
        (404, {}, b"{}"),
        (302, {"Location": "/elsewhere.json"}, b""),
        (200, {"Content-Encoding": "gzip"}, b"not gzip"),
    ],
)
def test_an_answer_that_is_no_document_is_refused(opened: Callable[..., Any], site: Site, answer: Any) -> None:
    site.reply = Reply(*answer)
    with opened({"allow_private": [site.address]}) as gateway:
        assert gateway.browser().open(site.client_id).status_code == 400
        assert gateway.browser().open(site.client_id).status_code == 400
        assert site.asked == 1  # it is not asked again at once


@pytest.mark.parametrize("made_up", ["https://host.example/{}*", "http://{address}/nothing/{}"])
def test_nobody_makes_the_gateway_forget_a_document_by_asking_for_others(
    opened: Callable[..., Any], site: Site, made_up: str
) -> None:
    with opened({"allow_private": [site.address]}) as gateway:
        browser = gateway.browser()
        assert browser.open(site.client_id).status_code == 200
        for number in range(501):
            assert browser.open(made_up.format(number, address=site.address)).status_code == 400
        asked = site.asked
        assert browser.open(site.client_id).status_code == 200
        assert site.asked == asked


@pytest.mark.anyio
async def test_slow_documents_of_one_host_keep_out_neither_others_nor_approved_ones() -> None:
    may_answer, was_asked = threading.Event(), threading.Event()

    def answer(path: str, headers: Mapping[str, str], _: bytes) -> Reply:
        if path.startswith("/slow"):
            was_asked.set()
            may_answer.wait()
        [host] = [value for name, value in headers.items() if name.lower() == "host"]
        client_id = f"http://{host}{path}"
        return Reply(body=json.dumps({"client_id": client_id, "redirect_uris": [REDIRECT]}).encode())

    with site(answer) as address:
        other = f"localhost:{address.rpartition(':')[2]}"
        approved = f"http://{address}/approved.json"

        async def is_approved(url: str) -> bool:
            return url == approved

        documents = ClientDocuments(is_approved, [address, other])
        refused: list[str] = []

        async def ask(url: str) -> None:
            try:
                assert (await documents.find(url)).id == url
            except UnusableDocument as fault:
                refused.append(str(fault))

        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(ask, f"http://{address}/slow/{number}.json")
            await anyio.to_thread.run_sync(was_asked.wait)
            try:
                await ask(f"http://{other}/client.json")
                await ask(approved)
                assert len(refused) == 6
                assert all("too many documents" in words for words in refused)
            finally:
                may_answer.set()
        for number in range(501):
            await ask(f"http://{other}/{number}.json")
        assert len(refused) == 6
    assert (await documents.find(approved)).id == approved  # though its site has gone


def test_documents_can_be_switched_off(opened: Callable[..., Any], site: Site) -> None:
    with opened({"allow_private": [site.address], "client_documents": False, "registration": False}) as gateway:
        assert gateway.browser().open(site.client_id).status_code == 400
        assert site.asked == 0
        metadata = gateway.http.get("/.well-known/oauth-authorization-server").json()
        assert metadata["client_id_metadata_document_supported"] is False
        assert "registration_endpoint" not in metadata
        assert gateway.http.post("/register", json={}).status_code == 401
