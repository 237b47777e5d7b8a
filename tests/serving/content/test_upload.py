"""`POST /content`: whoever has the token puts content into the store, as it comes."""

from typing import Any

import anyio
import pytest

from gateway.content.store import fetch_bytes

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR\0\0\0\2\0\0\0\3\10\2\0\0\0" + b"\0" * 20


async def test_a_body_becomes_content_with_a_handle_and_a_link(client, store, token):
    with client() as asked:
        response = asked.post("/content?name=chart.png", content=PNG, headers=token)
        told = response.json()
        again = asked.get(told["url"])
    assert response.status_code == 201
    assert told["handle"].startswith("img_")
    assert told["uri"] == f"content://{told['handle']}"
    assert (told["kind"], told["media_type"], told["size"], told["name"]) == (
        "image",
        "image/png",
        len(PNG),
        "chart.png",
    )
    assert len(told["sha256"]) == 64
    assert (again.content, again.headers["content-type"]) == (PNG, "image/png")
    assert await fetch_bytes(store, told["handle"], owner="token") == PNG


def test_a_body_in_chunks_of_unknown_number_is_taken_too(client, token):
    def chunks():
        yield b"a,b\n"
        yield b""
        yield b"1,2\n" * 10_000

    with client() as asked:
        headers = {**token, "Content-Type": "text/csv", "Content-Disposition": 'attachment; filename="../numbers.csv"'}
        told = asked.post("/content", content=chunks(), headers=headers).json()
    assert (told["size"], told["media_type"], told["name"], told["kind"]) == (
        40_004,
        "text/csv",
        "numbers.csv",
        "document",
    )


@pytest.mark.parametrize(
    ("declared", "taken"),
    [
        ("text/plain", "image/png"),
        ("application/x-www-form-urlencoded", "image/png"),
        (None, "image/png"),
    ],
)
def test_the_bytes_say_what_they_are(client, token, declared, taken):
    headers = {**token, "Content-Type": declared} if declared else token
    with client() as asked:
        assert asked.post("/content", content=PNG, headers=headers).json()["media_type"] == taken


@pytest.mark.parametrize("declared", ["application/x-www-form-urlencoded", "", "nonsense;;", None])
def test_what_curl_says_of_everything_says_nothing(client, token, declared):
    headers = {**token, "Content-Type": declared} if declared is not None else token
    with client() as asked:
        media_type = asked.post("/content", content=b"hello", headers=headers).json()["media_type"]
    assert media_type in ("application/octet-stream", "nonsense")


def test_an_upload_needs_the_token_on_this_machine_too(client, store):
    with client() as asked:
        assert asked.post("/content", content=b"x").status_code == 401
        assert asked.post("/content", content=b"x", headers={"Authorization": "Bearer wrong"}).status_code == 401
    with client(token=None) as asked:
        response = asked.post("/content", content=b"x")
        assert response.status_code == 401
        assert "mcp-gateway put" in response.json()["error"]
        assert asked.post("/content", content=b"x", headers={"Authorization": "Bearer any"}).status_code == 401
    assert store.usage == (0, 0)


def test_a_post_from_another_site_is_refused_with_the_token_too(client, store, token):
    with client() as asked:
        for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"}):
            assert asked.post("/content", content=b"x", headers={**token, **headers}).status_code in (403, 421)
    assert store.usage == (0, 0)


def test_an_upload_over_the_limit_is_refused_by_its_length_or_as_soon_as_it_is(client, store, token):
    with client(content={"max_upload_bytes": 1_000}) as asked:
        declared = asked.post("/content", content=b"x" * 1_001, headers=token)
        chunked = asked.post("/content", content=iter([b"x" * 600, b"y" * 600, b"z" * 600]), headers=token)
        assert asked.post("/content", content=b"x" * 1_000, headers=token).status_code == 201
    for response in (declared, chunked):
        assert response.status_code == 413
        assert "max_upload_bytes" in response.json()["error"]
    assert store.usage == (1_000, 1)


def test_an_upload_that_the_store_has_no_room_for_is_refused(client, token):
    with client() as asked:
        response = asked.post("/content", content=b"x" * 10_000_001, headers=token)
    assert response.status_code == 413
    assert "store" in response.json()["error"]


@pytest.mark.parametrize("headers", [{"Content-Type": "multipart/form-data; boundary=x"}, {"Content-Encoding": "gzip"}])
def test_forms_and_packed_bodies_are_not_taken(client, store, token, headers):
    with client() as asked:
        response = asked.post("/content", content=b"--x\r\n", headers={**token, **headers})
    assert response.status_code == 415
    assert "error" in response.json()
    assert store.usage == (0, 0)


def test_other_methods_are_not_allowed(client, token):
    with client() as asked:
        for method in ("GET", "PUT", "DELETE"):
            assert asked.request(method, "/content", headers=token).status_code == 405


async def test_an_upload_that_breaks_off_leaves_nothing(client, store, links):
    from gateway.serving.content.upload import Upload

    messages = [
        {"type": "http.request", "body": b"half", "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive():
        return messages.pop(0)

    sent = []

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/content", "query_string": b"", "headers": [],
             "gateway.principal": "token"}  # fmt: skip
    with anyio.fail_after(10):
        await Upload(store, links, 1_000)(scope, receive, send)
    assert (sent, store.usage) == ([], (0, 0))


async def test_an_upload_that_falls_silent_is_given_up(store, links, monkeypatch):
    from gateway.serving.content import upload

    monkeypatch.setattr(upload, "_SILENCE_SECONDS", 0.1)
    monkeypatch.setattr(upload, "_LINGERING_SECONDS", 0.1)

    async def receive() -> Any:
        await anyio.sleep_forever()

    sent = []

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/content", "query_string": b"", "headers": [],
             "gateway.principal": "token"}  # fmt: skip
    with anyio.fail_after(10):
        await upload.Upload(store, links, 1_000)(scope, receive, send)
    assert sent[0]["status"] == 408
    assert store.usage == (0, 0)


# -- what links begin with ---------------------------------------------------------------------------------------------

FORWARDED = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "gw.example.com", "X-Forwarded-Prefix": "/gw"}


def base_of(asked, headers) -> str:
    return asked.post("/content", content=b"x", headers=headers).json()["url"].partition("/content/")[0]


def test_links_begin_with_the_address_that_was_asked(client, token):
    with client() as asked:
        assert base_of(asked, token) == "http://127.0.0.1:8484"
        assert base_of(asked, {**token, "Host": "localhost:9"}) == "http://localhost:9"
    with client(root_path="/gw") as asked:
        assert base_of(asked, token) == "http://127.0.0.1:8484/gw"


def test_what_a_proxy_says_counts_only_where_it_is_trusted(client, token):
    with client() as asked:
        assert base_of(asked, {**token, **FORWARDED}) == "http://127.0.0.1:8484"
    trusting = {"trusted_proxies": ("10.0.0.0/8", "::1")}
    with client(http=trusting, peer="192.0.2.1") as asked:
        assert base_of(asked, {**token, **FORWARDED}) == "http://127.0.0.1:8484"
    for peer in ("10.1.2.3", "::1"):
        with client(http=trusting, peer=peer) as asked:
            assert base_of(asked, {**token, **FORWARDED}) == "https://gw.example.com/gw"
            standard = 'for=1.2.3.4;host=evil.example, for=1.2.3.4;proto=https;host="gw.example.com:444"'
            assert base_of(asked, {**token, "Forwarded": standard}) == "https://gw.example.com:444"
            sent = {**FORWARDED, "X-Forwarded-Host": "evil.example, gw.example.com"}
            assert base_of(asked, {**token, **sent}) == "https://gw.example.com/gw"
            for name, value in (("Host", 'a"b'), ("Host", "a/b"), ("Host", "u@h"), ("Prefix", "//x"), ("Proto", "ftp")):
                base = base_of(asked, {**token, f"X-Forwarded-{name}": value})
                assert base == "http://127.0.0.1:8484"


def test_under_a_root_path_the_routes_are_found_with_it_and_without(client, token):
    with client(root_path="/gw") as asked:
        for path in ("/content", "/gw/content"):
            response = asked.post(path, content=b"x", headers=token)
            assert response.status_code == 201
            link = response.json()["url"]
            assert asked.get(link).status_code == 200
            assert asked.get(link.replace("/gw/", "/")).status_code == 200
        assert asked.get("/gw/healthz").status_code == 404  # not asked for a token, and not served here
        for path in ("/", "/gw", "/gw/"):
            assert "/mcp" in asked.get(path, headers=token).text
        assert asked.get("/gwen/content", headers=token).status_code == 404


def test_the_host_of_the_public_url_is_one_of_ours(client, token):
    host = {"Host": "gw.example.com"}
    with client(public_url="https://gw.example.com/gw") as asked:
        assert asked.get("/", headers={**token, **host}).status_code == 200
    with client() as asked:
        assert asked.get("/", headers={**token, **host}).status_code == 421
