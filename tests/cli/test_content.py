"""`mcp-gateway put` and `mcp-gateway content`: the store from the command line, with a gateway and without one."""

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from tests.servers.loopback import open_url

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Unix sockets and signals are POSIX's")

PNG = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR\0\0\0\2\0\0\0\3\10\2\0\0\0" + b"\0" * 20


@pytest.fixture
def picture(tmp_path):
    path = tmp_path / "chart.png"
    path.write_bytes(PNG)
    return path


@pytest.fixture
def kept(tmp_path):
    """A configuration with a store that lasts."""
    path = tmp_path / "kept.toml"
    path.write_text(f'[store]\nurl = "{(tmp_path / "store").as_uri()}"\n')
    return path


def wait_for_gateway(command) -> None:
    """Until one can be asked: it may answer its hosts a little before."""
    while not command("status", "--json").json()["gateways"]:
        pass


def fetched(url: str) -> tuple[int, bytes]:
    try:
        with open_url(url, 30) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


@pytest.mark.parametrize("token", ["", '[http]\ntoken = "sesame-of-sixteen"\n'])
def test_what_is_put_has_a_link_and_is_listed_saved_and_removed(start, pictures, command, picture, tmp_path, token):
    process = start("serve", "--http", "--port", "0", "--config", pictures(token))
    process.line_with("listening on")
    wait_for_gateway(command)
    told = command("put", picture, "--json").json()
    assert (told["kind"], told["media_type"], told["name"], told["size"]) == (
        "image",
        "image/png",
        "chart.png",
        len(PNG),
    )
    assert fetched(told["url"]) == (200, PNG)
    assert fetched(told["url"][:-2])[0] == 403
    shown = command("put", picture, "--as", "../again.png").out.splitlines()
    assert shown[0] == f"{told['handle']}  image/png, {len(PNG)} bytes"
    assert fetched(shown[1]) == (200, PNG)
    listed = command("content", "ls", "--json").json()
    assert [one["handle"] for one in listed["content"]] == [told["handle"]]
    assert re.search(
        rf"{told['handle']}\s+image\s+image/png\s+{len(PNG)} bytes\s+20\d\d-", command("content", "ls").out
    )
    saved = command("content", "get", f"content://{told['handle'].upper()}", "--json").json()
    assert saved["file"] == "chart.png"
    with open("chart.png", "rb") as file:
        assert file.read() == PNG
    there = command("content", "get", told["handle"])
    assert (there.code, "chart.png exists" in there.err) == (2, True)
    assert command("content", "get", told["handle"], "--to", tmp_path / "x.png").code == 0
    assert (tmp_path / "x.png").read_bytes() == PNG
    assert command("content", "rm", told["handle"]).code == 0
    gone = command("content", "get", told["handle"], "--to", tmp_path / "y.png")
    assert (gone.code, "there is no content" in gone.err) == (1, True)
    assert not list(tmp_path.glob("*y.png*"))
    assert fetched(told["url"])[0] == 404
    listed = command("content", "ls", "--json").json()
    assert (listed["content"], listed["pieces"], listed["others"]) == ([], 0, [])


def test_a_gateway_on_stdio_keeps_what_is_put_for_its_host_and_gives_no_link(start, pictures, command, picture):
    process = start("serve", "--config", pictures())
    process.initialize()
    process.send(id=2, method="tools/list", params={})
    process.answer(2)
    wait_for_gateway(command)
    told = command("put", picture, "--json").json()
    assert told["url"] is None
    assert command("put", picture).out == f"{told['handle']}  image/png, {len(PNG)} bytes\n"
    process.send(id=3, method="resources/read", params={"uri": told["uri"]})
    contents = process.answer(3)["result"]["contents"]
    assert contents[0]["mimeType"] == "image/png"
    assert command("content", "ls", "--owner", "token", "--json").json()["content"] == []


DAVE = f'[access.tokens.dave]\nhash = "sha256:{"0" * 64}"\n'


def test_the_operator_is_told_whose_content_it_is_where_hosts_have_tokens(start, pictures, command, picture, tmp_path):
    process = start("serve", "--http", "--port", "0", "--config", pictures(DAVE))
    process.line_with("listening on")
    wait_for_gateway(command)
    lost = command("put", picture)
    assert "kept for local, which no host of this gateway is: --owner NAME" in lost.err
    assert "(dave)" in lost.err
    assert "did you mean 'dave'?" in command("put", picture, "--owner", "dvae").err
    kept = command("put", picture, "--owner", "dave", "--json")
    assert kept.err == ""
    handle = kept.json()["handle"]
    listed = command("content", "ls")
    assert "content of local; others have some, too (--owner): dave" in listed.err
    assert handle not in listed.out
    assert handle in command("content", "ls", "--owner", "dave").out
    got = command("content", "get", handle, "--to", tmp_path / "his.png")
    assert (got.code, "it belongs to dave" in got.err) == (0, True)
    assert (tmp_path / "his.png").read_bytes() == PNG
    left = command("content", "rm", handle)
    assert (left.code, "belongs to dave, so it was not removed" in left.err) == (1, True)
    assert command("content", "rm", handle, "--owner", "dave").code == 0


def test_a_store_that_lasts_tells_whose_content_it_is_without_a_gateway(command, kept, picture, tmp_path):
    with kept.open("a") as file:
        file.write(DAVE)
    lost = command("put", picture, "--config", kept)
    assert "kept for local, as hosts on stdio are: --owner NAME keeps it for a host with a token" in lost.err
    told = command("put", picture, "--owner", "dave", "--config", kept, "--json").json()
    assert "others have some, too (--owner): dave" in command("content", "ls", "--config", kept).err
    got = command("content", "get", told["handle"], "--to", tmp_path / "x.png", "--config", kept)
    assert (got.code, "it belongs to dave" in got.err) == (0, True)


def test_a_large_file_passes_and_one_over_the_limit_is_refused(start, pictures, command, tmp_path):
    process = start("serve", "--config", pictures("[content]\nmax_upload_bytes = 20000000\n"))
    process.initialize()
    process.send(id=2, method="tools/list", params={})
    process.answer(2)
    wait_for_gateway(command)
    large = tmp_path / "large.bin"
    large.write_bytes(os.urandom(1_000_000) * 20)
    told = command("put", large, "--json").json()
    assert told["size"] == 20_000_000
    assert command("content", "get", told["handle"], "--to", tmp_path / "back.bin").code == 0
    assert (tmp_path / "back.bin").read_bytes() == large.read_bytes()
    with large.open("ab") as file:
        file.write(b"x")
    refused = command("put", large)
    assert (refused.code, "max_upload_bytes" in refused.err) == (1, True)


def test_without_a_gateway_a_store_that_lasts_is_opened_itself(start, command, kept, picture, tmp_path):
    told = command("put", picture, "--config", kept, "--json").json()
    assert (told["media_type"], told["url"]) == ("image/png", None)
    listed = command("content", "ls", "--config", kept, "--json").json()
    assert [one["handle"] for one in listed["content"]] == [told["handle"]]
    assert command("content", "get", told["handle"], "--config", kept).out.startswith("chart.png  image/png")
    process = start("serve", "--config", kept)
    process.initialize()
    process.send(id=2, method="resources/read", params={"uri": told["uri"]})
    assert process.answer(2)["result"]["contents"][0]["mimeType"] == "image/png"
    wait_for_gateway(command)
    assert command("content", "rm", told["handle"], "--config", kept).code == 0
    missing = command("content", "get", told["handle"], "--config", kept, "--to", tmp_path / "z")
    assert (missing.code, missing.out) == (1, "")


def test_without_a_gateway_and_with_a_store_in_memory_there_is_nothing_to_put_it_into(command, picture):
    for arguments in (("put", picture), ("content", "ls"), ("content", "rm", "img_7h3k2m9q4w8x")):
        ended = command(*arguments)
        assert (ended.code, "no gateway is running" in ended.err, "[store] url" in ended.err) == (2, True, True)


def test_what_cannot_be_read_or_written_is_said(command, kept, picture, tmp_path):
    for ended in (
        command("put", tmp_path / "nothing", "--config", kept),
        command("put", tmp_path, "--config", kept),
        command("content", "get", "img_7h3k2m9q4w8x", "--json", "--to", "-", "--config", kept),
    ):
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.startswith("error: ")
    handle = command("put", picture, "--config", kept, "--json").json()["handle"]
    ended = command("content", "get", handle, "--to", tmp_path / "no" / "folder", "--config", kept)
    assert (ended.code, "cannot write" in ended.err) == (2, True)


def test_content_goes_through_pipes(kept):
    def run(*arguments, given=b""):
        whole = [sys.executable, "-m", "gateway", *map(str, arguments), "--config", str(kept)]
        ended = subprocess.run(whole, input=given, capture_output=True, timeout=60, check=False)
        assert ended.returncode == 0, ended.stderr.decode()
        return ended.stdout

    told = json.loads(run("put", "-", "--as", "x.csv", "--json", given=b"a,b\n"))
    assert (told["name"], told["media_type"], told["size"]) == ("x.csv", "text/csv", 4)
    assert run("content", "get", told["handle"], "--to", "-") == b"a,b\n"
    pipe = kept.with_name("pipe")
    os.mkfifo(pipe)
    with subprocess.Popen(["/bin/sh", "-c", f"printf 'a,b\\n' > '{pipe}'"]):
        assert json.loads(run("put", pipe, "--json"))["sha256"] == told["sha256"]


def called(base: str, tool: str, arguments: dict, **headers: str) -> dict:
    """The result of a call over HTTP, by a host of 2026-07-28."""
    of = "io.modelcontextprotocol"
    meta = {f"{of}/protocolVersion": "2026-07-28", f"{of}/clientCapabilities": {}, f"{of}/clientInfo": {"name": "t"}}
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    told = {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    request = urllib.request.Request(f"{base}/mcp/linked", json.dumps(message).encode(), told)
    with open_url(request, 60) as response:
        text = response.read().decode()
    lines = [line.removeprefix("data:") for line in text.splitlines() if line.startswith("data:")]
    return json.loads(lines[-1] if lines else text)["result"]


def test_where_a_profile_asks_for_links_a_result_names_them_under_the_address_that_was_asked(
    start, pictures, command, tmp_path
):
    linked = '[profiles.linked]\nextends = "cline"\nsets = { content_url.show = "instead" }\n'
    settings = '[http]\ntoken = "sesame"\ntrusted_proxies = ["127.0.0.1"]\n[logging]\ncontent = true\nlevel = "debug"\n'
    process = start("serve", "--http", "--port", "0", "--config", pictures(settings + linked), "--debug")
    base = re.search(r"http://[^/]+", process.line_with("listening on"))[0]
    result = called(base, "pics__picture", {}, Authorization="Bearer sesame")
    (line,) = [block["text"] for block in result["content"] if "a link that opens it" in block["text"]]
    url = re.search(r"http://\S+[^\]\s]", line)[0]
    assert url.startswith(f"{base}/content/img_")
    assert "handle" not in line
    status, content = fetched(url)
    assert (status, content[:8]) == (200, PNG[:8])
    told = {"X_Forwarded_Proto": "https", "X_Forwarded_Host": "gw.example.com"}
    proxied = called(base, "pics__picture", {}, Authorization="Bearer sesame", **told)
    assert "https://gw.example.com/content/img_" in str(proxied)
    signature = url.rpartition("signature=")[2]
    process.process.terminate()
    process.wait()
    written = "\n".join(process.rest(process.err))
    assert "pics__picture" in written
    assert signature not in written
    assert "?expires=" in written


def test_the_gateways_own_tool_keeps_what_a_model_brings(start, pictures):
    settings = '[profiles.linked]\nextends = "passthrough"\nsets = { tools.helpers = true }\n'
    process = start("serve", "--http", "--port", "0", "--config", pictures(settings))
    base = re.search(r"http://[^/]+", process.line_with("listening on"))[0]
    told = called(base, "gateway_put", {"data": "YSxi", "name": "x.csv", "media_type": "text/csv"})["structuredContent"]
    assert (told["name"], told["media_type"], told["size"]) == ("x.csv", "text/csv", 3)
    assert fetched(told["url"]) == (200, b"a,b")


def test_a_folder_is_no_file_to_put(command):
    for named in (".", ""):
        ended = command("put", named)
        assert ended.code == 2
        assert "it is a folder; name a file, or - for stdin" in ended.err
    assert '[store] url = "file:///..."' in command("content", "ls").err
