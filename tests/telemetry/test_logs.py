"""Log lines: what they look like, and what never stands in them."""

import io
import json
import logging
import os
import sys
from collections.abc import Callable, Generator

import pytest

from gateway.config.gateway_settings import LoggingSettings
from gateway.config.http_settings import HttpSettings
from gateway.config.schema import Settings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.telemetry import configure_logging, make_formatter, new_request, request_id
from gateway.telemetry.logs import fields

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
Formatted = Callable[..., str]


def settings(**logging_settings) -> Settings:
    upstream = UpstreamSettings(
        url="https://user:pass-word@example.com/mcp?key=query-secret",
        headers={"Authorization": "Bearer header-secret"},
    )
    program = UpstreamSettings(command="x", env={"API_KEY": "env-secret", "MODE": "quiet-mode"})
    return Settings(
        logging=LoggingSettings(**logging_settings),
        http=HttpSettings(token="own-secret"),
        upstreams={"web": upstream, "program": program},
    )


@pytest.fixture
def formatted() -> Formatted:
    def call(message: str, *args: object, form: str = "text", error: Exception | None = None, **more: object) -> str:
        info = (type(error), error, error.__traceback__) if error else None
        record = logging.LogRecord("gateway.room", logging.WARNING, "x.py", 1, message, args, info)
        vars(record).update(fields(**more))
        return make_formatter(settings(format=form)).format(record)

    return call


@pytest.fixture
def restored() -> Generator[None]:
    """Whatever a test does to logging is undone."""
    names = ("gateway", "gateway.upstream", "gateway.routing", "mcp", "client")
    before = logging.root.handlers[:], logging.root.level, {name: logging.getLogger(name).level for name in names}
    yield
    for handler in set(logging.root.handlers) - set(before[0]):
        handler.close()
    logging.root.handlers[:], _ = before[0], logging.root.setLevel(before[1])
    for name, level in before[2].items():
        logging.getLogger(name).setLevel(level)


def test_a_text_line_has_time_level_and_part(formatted):
    line = formatted("%s is gone", "charts")
    time, _, rest = line.partition(" ")
    assert time.endswith("Z")
    assert len(time) == len("2026-07-28T03:00:00.123Z")
    assert rest == "WARNING gateway.room: charts is gone"


def test_a_json_line_has_what_it_is_about_beside_its_message(formatted):
    line = json.loads(formatted("%s is gone", "chärts", form="json", upstream="charts", nothing=None))
    assert set(line) == {"time", "level", "logger", "message", "upstream"}
    assert (line["level"], line["logger"], line["message"]) == ("warning", "gateway.room", "chärts is gone")


@pytest.mark.parametrize("form", ["text", "json"])
def test_lines_of_a_request_carry_its_id_and_others_none(formatted, form):
    with new_request() as ident:
        inside = formatted("x", form=form)
    assert ident in inside
    assert ident not in formatted("x", form=form)
    assert request_id() is None


@pytest.mark.parametrize("form", ["text", "json"])
def test_what_a_terminal_would_obey_is_written_out_and_a_message_stays_one_line(formatted, form):
    line = formatted("a\x1b[2J\x9b31m\x7f\u202e\r\nWARNING forged", form=form)
    assert line.count("\n") == 0
    assert not set("\x1b\x9b\x7f\u202e\r") & set(line)
    if form == "json":
        assert json.loads(line)["message"] == "a\x1b[2J\x9b31m\x7f\u202e\r\nWARNING forged"


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("secret", ["pass-word", "query-secret", "header-secret", "env-secret", "own-secret"])
def test_no_secret_of_the_configuration_is_in_a_line(formatted, form, secret):
    try:
        raise ValueError(f"inside {secret}")
    except ValueError as error:
        line = formatted("with %s", secret, form=form, error=error, header=f"Bearer {secret}", deep={"of": secret})
    assert secret not in line
    assert "***" in line
    assert "quiet-mode" in formatted("quiet-mode", form=form)


@pytest.mark.parametrize("text", [PIXEL, f"data:image/png;base64,{PIXEL[:20]}", "A" * 90, f'{{"data": "{PIXEL}"}}'])
def test_no_base64_is_in_a_line(formatted, text):
    for form in ("text", "json"):
        line = formatted("%s", text, form=form, result=text)
        assert PIXEL[:20] not in line
        assert "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" not in line
        assert "characters" in line


@pytest.mark.parametrize(
    "text",
    [
        "/home/somebody/projects/a-rather-long-name/with_many_parts/and-more/of-them/server.py",
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "a_tool_with_a_name_that_goes_on_and_on_for_as_long_as_some_hosts_allow_names",
    ],
)
def test_paths_digests_and_names_stay(formatted, text):
    assert text in formatted("%s", text)


def test_a_traceback_is_part_of_its_json_line(formatted):
    try:
        raise ValueError("broken")
    except ValueError as error:
        line = json.loads(formatted("failed", form="json", error=error))
    assert line["error"].endswith("ValueError: broken")


def test_an_endless_message_is_cut(formatted):
    assert len(formatted("%s", "many words " * 100_000)) < 20_000


def test_every_part_can_have_its_own_level(restored):
    stream = io.StringIO()
    handler = configure_logging(settings(level="warning", levels={"upstream": "debug"}), stream=stream)
    logging.getLogger("gateway.upstream.transports.stdio").debug("one")
    logging.getLogger("gateway.routing").info("two")
    logging.getLogger("gateway.routing").warning("three")
    logging.getLogger("mcp.client").critical("four")
    logging.getLogger("mcp.client").error("five")
    handler.flush()
    assert [line.split()[-1] for line in stream.getvalue().splitlines()] == ["one", "three", "four"]


def test_a_new_configuration_replaces_the_last_and_leaves_other_handlers_alone(restored):
    other = logging.NullHandler()
    logging.root.addHandler(other)
    first, second = io.StringIO(), io.StringIO()
    configure_logging(settings(levels={"upstream": "debug"}), stream=first)
    handler = configure_logging(settings(), stream=second)
    logging.getLogger("gateway.upstream").debug("quiet")
    logging.getLogger("gateway.upstream").info("said")
    handler.flush()
    assert first.getvalue() == ""
    assert second.getvalue().endswith("said\n")
    assert other in logging.root.handlers


def test_debug_logs_everything_of_the_gateway_whatever_the_parts_say(restored):
    stream = io.StringIO()
    handler = configure_logging(settings(level="error", levels={"upstream": "error"}), debug=True, stream=stream)
    logging.getLogger("gateway.upstream").debug("one")
    logging.getLogger("mcp.client").error("content that could not be parsed")
    handler.flush()
    assert [line.split()[-1] for line in stream.getvalue().splitlines()] == ["one"]


def test_a_reader_that_does_not_read_stops_nobody_and_what_it_missed_is_counted(restored):
    reading, writing = os.pipe()
    with open(writing, "w", encoding="utf-8") as stream, open(reading, encoding="utf-8") as reader:
        handler = configure_logging(settings(), stream=stream)
        for number in range(10_000):  # a pipe holds 64 KB, and the handler 2,000 lines
            logging.getLogger("gateway.room").warning("line %d: %s", number, "words " * 30)
        dropped, seen = 0, list[str]()
        while len(seen) + dropped < 10_000:
            said, is_report, _ = reader.readline().partition(" log lines were dropped")
            if is_report:  # in parts, if the first were dropped before the writer had started
                dropped += int(said.split()[-1])
            else:
                seen.append(said)
        assert "line 0:" in seen[0]
        assert len(seen) + dropped == 10_000
        assert dropped > 1_000
        handler.close()


def test_a_process_writes_its_last_lines_before_it_ends():
    import subprocess

    code = (
        "import logging\n"
        "from gateway.config.schema import Settings\n"
        "from gateway.telemetry import configure_logging\n"
        "configure_logging(Settings())\n"
        "[logging.getLogger('gateway').warning('line %d', number) for number in range(100)]\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert [line.split()[-1] for line in run.stderr.splitlines()] == [str(number) for number in range(100)]


def test_a_part_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="no part called 'upstrem'"):
        LoggingSettings(levels={"upstrem": "debug"})
