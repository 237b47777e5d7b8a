"""`mcp-gateway login` and `logout`, with a browser that follows redirects, beside a running gateway and without one."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.loopback import open_url

SERVER = Path(__file__).parents[1] / "servers" / "login_server.py"
BROWSER = """
import http.cookiejar, os, pathlib, re, stat, sys, urllib.parse, urllib.request
[page] = sys.argv[1:]
file = pathlib.Path(urllib.request.url2pathname(urllib.parse.urlsplit(page).path))
if sys.platform != "win32":
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
link = re.search('url=(http[^"]+)"', file.read_text("utf-8"))[1]
jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
jar.handler_order = 400  # before the account's cookie is added where the jar has none
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), jar)
opener.addheaders = [("Cookie", "account=alices")]
opener.open(link).read()
"""


@pytest.fixture
def origin():
    """The address of a server that wants a login."""
    with subprocess.Popen([sys.executable, str(SERVER)], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


@pytest.fixture
def config(tmp_path, monkeypatch, origin):
    """A configuration with that server, and a browser."""
    monkeypatch.setenv("MCP_GATEWAY_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("MCP_GATEWAY_CACHE", str(tmp_path / "cache"))
    (tmp_path / "browser.py").write_text(BROWSER, "utf-8")
    monkeypatch.setenv("BROWSER", f"{sys.executable} {tmp_path / 'browser.py'} %s")
    path = tmp_path / "mcp-gateway.toml"
    path.write_text(
        f"[logins]\nkey = 'a key for the tests of logins'\n[upstreams.notes]\nurl = '{origin}/mcp'\n"
        "[upstreams.program]\ncommand = 'x'\nenabled = false\n",
        "utf-8",
    )
    return path


def accounts(origin):
    """The accounts with whose tokens the server was called."""
    with open_url(f"{origin}/seen", 30) as answer:
        return {account for _, account, _ in json.load(answer)}


def test_login_and_logout_without_a_running_gateway(start, config, origin, tmp_path):
    def run(*arguments):
        process = start(*arguments, "--config", config)
        code = process.wait()
        return code, "\n".join(process.rest(process.out)), "\n".join(process.rest(process.err))

    before = run("tools")
    assert before[0] == 3
    assert f"upstream notes: waits for a login (mcp-gateway login notes --config {config})" in before[2]
    code, out, err = run("login", "notes")
    assert (code, out.splitlines()[-1]) == (0, "logged in to notes"), err
    assert re.match(r"http://127\.0\.0\.1:\d+/oauth/login/", out)
    code, out, err = run("tools")
    assert code == 0, err
    assert "notes__of_alices" in out
    assert "access-" not in (tmp_path / "state" / "logins.json").read_text("utf-8")
    assert run("logout", "notes")[:2] == (0, "logged out of notes")
    assert run("logout", "notes")[:2] == (0, "there was no login to notes of local")
    assert run("tools")[0] == 3
    assert accounts(origin) == {None, "alices"}


def test_a_running_gateway_uses_the_login_at_once_and_ends_it(start, config, ask):
    gateway = start("serve", "--config", config)
    gateway.initialize()
    told = ask(gateway, "gateway_login", {"upstream": "notes"}, fails=True)
    assert "ask the user to open http://127.0.0.1:" in told
    assert start("login", "notes", "--config", config).wait() == 0
    assert ask(gateway, "notes__whoami") == "you are alices"
    status = start("status")
    assert status.wait() == 0
    assert any("notes" in line and "ready" in line for line in status.rest(status.out))
    for shown in (start("status", "--json"), start("logs")):
        assert shown.wait() == 0
        text = "\n".join(shown.rest(shown.out))
        assert "notes" in text
        assert not any(secret in text for secret in ("access-", "refresh-", "code="))
    assert start("logout", "notes", "--config", config).wait() == 0
    assert "waits for a login" in ask(gateway, "notes__whoami", fails=True)


def test_a_host_on_stdio_is_given_a_link_to_a_page_on_this_machine(start, config, ask, tmp_path):
    gateway = start("serve", "--config", config)
    gateway.initialize()
    told = ask(gateway, "gateway_login", {"upstream": "notes"}, fails=True)
    link = told.partition("open ")[2].partition(" ")[0]
    # As a browser on this machine: the page sends it on, and its cookie comes back with it.
    browser = (
        "import http.cookiejar, sys, urllib.request as r;"
        "jar = http.cookiejar.CookieJar();"
        "print(r.build_opener(r.ProxyHandler({}), r.HTTPCookieProcessor(jar)).open(sys.argv[1]).read().decode())"
    )
    page = subprocess.run([sys.executable, "-c", browser, link], capture_output=True, text=True, check=True)
    assert "You can close this page" in page.stdout
    assert ask(gateway, "notes__whoami") == "you are somebody"


def test_what_takes_no_login_is_refused(command, config):
    assert (
        "there is no upstream 'other' (did you mean 'notes'? there are: notes, program)"
        in command("login", "other", "--config", config).err
    )
    assert "program takes no login" in command("login", "program", "--config", config).err
