"""A gateway of several workers, as its hosts, its operator and Prometheus see it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import httpx2
import psutil
import pytest

from gateway.core.results.output_variants import OUTPUTS, REVISION
from tests.serving.cluster.conftest import ALICE, BOB, SERVERS, Host
from tests.serving.workers.conftest import Start
from tests.telemetry.conftest import Serving

pytestmark = pytest.mark.skipif(os.name != "posix", reason="--workers is POSIX's")

A_MINUTE = 60
ROOT = Path(__file__).parents[3]
SIGNED_IN = {"Authorization": f"Bearer {ALICE}"}


def command(gateway: Serving, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the gateway's user."""
    folder = gateway.config.parent
    environ = {**os.environ, "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder), "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "gateway", *words], capture_output=True, text=True, env=environ, timeout=90, check=False
    )


def status_of(gateway: Serving) -> dict[str, Any]:
    return json.loads(command(gateway, "status", "--json").stdout)["gateways"][0]


def passed_on(gateway: Serving) -> int:
    """The number of requests that one worker has passed on to the other."""
    _, text, _ = gateway.get("/metrics", **SIGNED_IN)
    name = "mcp_gateway_requests_passed_on_total{"
    return sum(int(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(name))


def ready(gateway: Serving) -> None:
    until = time.monotonic() + A_MINUTE
    while gateway.get("/readyz")[0] != 200:
        assert time.monotonic() < until
        time.sleep(0.1)


def test_a_session_is_answered_whichever_worker_is_asked(gateway: Serving, scattered: Callable[..., Host]) -> None:
    ready(gateway)
    hosts = [scattered() for _ in range(4)]
    for one in hosts:
        one.open(gateway)
    before = passed_on(gateway)
    for asked in range(1, 60):
        counts = [one.call(gateway, "own__count").split() for one in hosts]
        assert {count[0] for count in counts} == {str(asked)}, "each call found the process with the state"
        assert len({count[1] for count in counts}) == len(hosts)
        if passed_on(gateway) > before:
            return
    raise AssertionError("no request has come to the worker that does not have its session")


def test_a_session_is_nobody_elses_at_any_worker(gateway: Serving, scattered: Callable[..., Host]) -> None:
    alice, bob = scattered(), scattered(BOB)
    bob.headers["Mcp-Session-Id"] = alice.open(gateway)
    for _ in range(8):
        assert bob.post(gateway, bob.message("tools/list", {})).status_code == 404


def test_metrics_are_those_of_all_workers_and_each_series_says_whose_it_is(gateway: Serving) -> None:
    ready(gateway)
    for _ in range(4):
        status, text, _ = gateway.get("/metrics", **SIGNED_IN)
        assert status == 200
        lines = text.splitlines()
        assert len([line for line in lines if line.startswith("# TYPE mcp_gateway_sessions ")]) == 1
        series = [line.partition(" ")[0] for line in lines if not line.startswith("#")]
        assert len(series) == len(set(series))
        assert {'mcp_gateway_sessions{worker="1"}', 'mcp_gateway_sessions{worker="2"}'} <= set(series)
        assert "mcp_gateway_store_bytes" in series, "which they have in common"
    assert gateway.get("/metrics")[0] == 401


def test_one_status_shows_all_workers_and_adds_up_their_calls(gateway: Serving, scattered: Callable[..., Host]) -> None:
    ready(gateway)
    before = sum(one["calls"]["total"] for one in status_of(gateway)["upstreams"])
    for _ in range(6):
        scattered().now(gateway, "all__count")
    report = status_of(gateway)
    assert report["pid"] == gateway.process.pid
    assert [(one["number"], one["state"], one["problem"]) for one in report["workers"]] == [
        (1, "ready", None),
        (2, "ready", None),
    ]
    assert sum(one["calls"]["total"] for one in report["upstreams"]) == before + 6
    assert [one["name"] for one in report["upstreams"]] == ["own", "all"]
    shown = command(gateway, "status").stdout
    assert "worker 2: ready" in shown
    assert "upstream all: ready" in command(gateway, "logs").stdout, "there is one log"


def test_content_that_one_worker_keeps_is_found_by_all(gateway: Serving, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("kept by any of them")
    put = command(gateway, "put", str(tmp_path / "note.txt"), "--json")
    assert put.returncode == 0, put.stderr
    kept = json.loads(put.stdout)
    for _ in range(6):
        status, text, _ = gateway.get(kept["url"].removeprefix(gateway.url))
        assert (status, text) == (200, "kept by any of them")
    assert kept["handle"] in command(gateway, "content", "ls").stdout


def test_there_is_no_console_that_would_show_a_part(gateway: Serving) -> None:
    refused = command(gateway, "console", "--no-browser")
    assert refused.returncode != 0
    assert "without --workers" in refused.stderr


def test_a_changed_configuration_is_read_by_all(start: Start) -> None:
    gateway = start()
    ready(gateway)
    config = Path(status_of(gateway)["config"])
    config.write_text(config.read_text() + '[access.tokens.carol]\ntoken = "carol-token-0123456789"\n')
    told = command(gateway, "reload")
    assert told.returncode == 0, told.stderr
    for _ in range(10):
        assert gateway.get("/metrics", Authorization="Bearer carol-token-0123456789")[0] == 200
    config.write_text("[nonsense")
    gateway.process.send_signal(signal.SIGHUP)
    gateway.line_with("was not read again by all workers")
    assert command(gateway, "reload").returncode == 2
    assert gateway.get("/readyz")[0] == 200


def test_a_worker_that_is_killed_is_started_again_and_its_sessions_go_on(
    start: Start, scattered: Callable[..., Host]
) -> None:
    gateway = start()
    ready(gateway)
    alice = scattered()
    alice.open(gateway)
    assert alice.call(gateway, "all__count").split()[0] == "1"
    time.sleep(0.5)  # what the other needs is written in the background
    first, second = (one["pid"] for one in status_of(gateway)["workers"])
    for number, pid in ((1, first), (2, second)):
        os.kill(pid, signal.SIGKILL)
        gateway.line_with(f"worker {number} was ended by SIGKILL: it is started again")
        assert alice.call(gateway, "all__count"), "another worker has taken over the session"
        until = time.monotonic() + A_MINUTE
        while len([one for one in status_of(gateway)["workers"] if one["state"] == "ready"]) < 2:
            assert time.monotonic() < until
    assert {one["pid"] for one in status_of(gateway)["workers"]}.isdisjoint({first, second})


def test_stopping_answers_what_is_running_and_leaves_nothing(start: Start, scattered: Callable[..., Host]) -> None:
    gateway = start()
    ready(gateway)
    workers = [one["pid"] for one in status_of(gateway)["workers"]]
    hosts = [scattered() for _ in range(4)]
    for one in hosts:
        one.open(gateway)
    with ThreadPoolExecutor() as threads:
        running = [threads.submit(one.call, gateway, "own__sleep", seconds=3) for one in hosts]
        time.sleep(1)
        assert command(gateway, "stop").returncode == 0
        assert all(one.result(A_MINUTE).startswith("1 ") for one in running)
    assert gateway.process.wait(A_MINUTE) == 0
    assert not any(psutil.pid_exists(pid) for pid in workers)


def test_whoever_has_connected_when_the_workers_have_stopped_is_told_to_come_back(start: Start) -> None:
    """No worker takes the connections: each waits in the port, which all of them share with their supervisor."""
    gateway = start()
    ready(gateway)
    workers = [psutil.Process(one["pid"]) for one in status_of(gateway)["workers"]]
    for one in workers:
        one.suspend()
    with ThreadPoolExecutor(8) as threads:
        answers = [threads.submit(gateway.get, "/healthz") for _ in range(8)]
        while not all(answer.running() for answer in answers):
            time.sleep(0.1)
        port = urlsplit(gateway.url).port
        found: list[Any] = []
        while len(found) < 8:
            found = [one for one in psutil.net_connections("tcp") if one.raddr and one.raddr[1] == port]
        gateway.process.terminate()
        gateway.line_with("stopping 2 workers")
        for one in workers:
            one.kill()
        for answer in answers:
            status, text, headers = answer.result(A_MINUTE)
            assert (status, headers["retry-after"]) == (503, "2"), text
    assert gateway.process.wait(A_MINUTE) == 0


def test_a_second_signal_ends_at_once(start: Start, scattered: Callable[..., Host]) -> None:
    gateway = start()
    ready(gateway)
    alice = scattered()
    alice.open(gateway)
    with alice.stream(
        gateway, alice.message("tools/call", {"name": "own__sleep", "arguments": {"seconds": 50}})
    ) as events:
        assert next(iter(events)) is None
        gateway.process.send_signal(signal.SIGINT)
        gateway.line_with("Ctrl-C again ends it at once")
        began = time.monotonic()
        gateway.process.send_signal(signal.SIGINT)
        with suppress(httpx2.RemoteProtocolError):  # the answer may be broken off in the middle
            list(events)
    assert gateway.process.wait(A_MINUTE) == 130
    assert time.monotonic() - began < 20


def test_no_worker_outlives_a_gateway_that_is_killed(start: Start) -> None:
    gateway = start()
    ready(gateway)
    report = status_of(gateway)
    shared = Path(url2pathname(urlsplit(report["store"]["url"]).path)).parent
    assert shared.is_dir()
    workers = [psutil.Process(one["pid"]) for one in report["workers"]]
    gateway.process.kill()
    _, alive = psutil.wait_procs(workers, A_MINUTE)
    assert not alive
    assert not shared.exists()


def test_limits_are_counted_by_all_workers_together(start: Start, scattered: Callable[..., Host]) -> None:
    gateway = start(more="[access.limits]\ncalls_per_minute = 5\n")
    ready(gateway)
    answers = [scattered().now(gateway, "all__count") for _ in range(8)]
    assert len([one for one in answers if "5 tool calls a minute" in one]) == 3, answers


def test_a_script_acts_on_the_state_that_its_host_has_at_any_worker(
    start: Start, scattered: Callable[..., Host]
) -> None:
    gateway = start(more='[code_mode]\nenabled = true\nmay_change = ["own__*"]\n')
    ready(gateway)
    script = "print(await own__count())"
    counted = [scattered().now(gateway, "own__count") for _ in range(2)]
    scripts = [scattered().now(gateway, "gateway_run", code=script) for _ in range(6)]
    answers = [one.split() for one in (*counted, *scripts)]
    assert [int(count) for count, _ in answers] == list(range(1, 9)), answers
    assert len({process for _, process in answers}) == 1, answers


def test_a_host_that_chooses_outputs_gets_them_from_whichever_worker_has_its_state(
    start: Start, scattered: Callable[..., Host]
) -> None:
    gateway = start(more="[experimental]\nresult_variants = true\n")
    ready(gateway)
    before, asked = passed_on(gateway), 0
    while passed_on(gateway) == before:
        asked += 1
        assert asked < 60, "no request has come to the worker that does not have the state"
        answer = scattered().stateless(
            gateway, "tools/call", "own__count", {"name": "own__count", "arguments": {}}, revision=REVISION
        )["result"]
        assert answer[OUTPUTS][0]["content"][0]["text"].split()[0] == str(asked)


def test_a_browser_logs_in_whichever_worker_it_comes_to(start: Start, scattered: Callable[..., Host]) -> None:
    server = subprocess.Popen([sys.executable, str(SERVERS / "login_server.py")], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        origin = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        gateway = start(
            more=f'[logins]\nkey = "a key for the tests of logins"\n[upstreams.notes]\nurl = "{origin}/mcp"\n'
        )
        ready(gateway)
        offered = scattered().now(gateway, "gateway_login", upstream="notes")
        link = re.search(r"http://\S+", offered)
        assert link, offered
        with httpx2.Client(trust_env=False, follow_redirects=True, cookies={"account": "alices"}) as browser:
            browser.headers["Connection"] = "close"
            for _ in range(8):  # each worker gets some of them
                page = browser.get(link[0])
                assert page.status_code == 200, page.text
            further = re.search(r'href="(\?continue=[0-9a-f]+)"', page.text)
            assert further, page.text
            done = browser.get(str(page.url.join(further[1])))
            assert "You can close this page" in done.text, done.text
        until = time.monotonic() + A_MINUTE
        answers: list[str] = []
        while len(answers) < 8:  # all workers know of it
            answer = scattered().now(gateway, "notes__whoami")
            answers = [*answers, answer] if answer == "you are alices" else []
            assert time.monotonic() < until, answer
    finally:
        server.kill()
        server.communicate()


@pytest.mark.parametrize(
    ("more", "options", "said"),
    [
        ('[cluster]\nurl = "redis://127.0.0.1:1/0"\n', (), "without [cluster]"),
        ("[console]\nenabled = true\n", (), "no console"),
        ("[experimental]\nfiles = true\n", (), "no files beside the protocol"),
        ("", ("--console",), "for one process"),
        ("", ("--bind", "0.0.0.0", "--port", "0", "--shared"), "for one process"),
    ],
)
def test_what_several_workers_cannot_serve_is_refused(
    tmp_path: Path, more: str, options: tuple[str, ...], said: str
) -> None:
    config = tmp_path / "mcp-gateway.toml"
    config.write_text(f"{more}[upstreams.x]\ncommand = 'true'\n")
    ended = subprocess.run(
        [sys.executable, "-m", "gateway", "serve", "--http", "--workers", "2", "--config", str(config), *options],
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)},
        timeout=A_MINUTE,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr
