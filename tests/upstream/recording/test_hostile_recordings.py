"""Recordings that were edited by hand, or by somebody else: every fault is said with its file and line."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from gateway.config.schema import Settings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.errors import ConfigError
from gateway.upstream.recording import read_recording as reading
from gateway.upstream.recording.content_files import ContentFile, whole_file, with_files, without_files
from gateway.upstream.recording.lines import FORMAT, Exchange, FailurePart, RefusalPart
from gateway.upstream.recording.read_recording import read_recording
from gateway.upstream.recording.recorder import Recorder, RecordOptions
from gateway.upstream.recording.replay import ReplayedConnection
from gateway.upstream.recording.replay_dispatcher import open_replay
from gateway.upstream.transports.failures import Secrets, Subject

HEADER = json.dumps({"format": FORMAT, "version": 1})
CONNECTION = json.dumps({"connection": 1, "upstream": "it"})
ANSWER = {"connection": 1, "method": "tools/call", "params": {"name": "x"}, "result": {"content": []}}

Write = Callable[..., Path]


@pytest.fixture
def write(folder: Path) -> Write:
    """Write the lines of a session after a good beginning, and return the folder."""

    def write(*lines: str, beginning: tuple[str, ...] = (HEADER, CONNECTION)) -> Path:
        folder.mkdir(exist_ok=True)
        (folder / "session-1.jsonl").write_text("".join(f"{line}\n" for line in (*beginning, *lines)), "utf-8")
        return folder

    return write


def altered(**changes: Any) -> str:
    return json.dumps(ANSWER | changes)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{not json", "is not JSON"),
        ("[1]", "is not a JSON object"),
        ('{"a": ' + "[" * 100_000, "nests too deeply"),
        (altered(resutl={}), "resutl: Extra inputs are not permitted"),
        (altered(error={"code": 1, "message": "x"}), "one of result, error, failure and cancelled"),
        (json.dumps({"connection": 1, "method": "tools/call"}), "one of result, error, failure and cancelled"),
        (altered(connection=7), "there is no connection 7 above it"),
        (altered(connection="1"), "connection: Input should be a valid integer"),
        (altered(result=[]), "result: Input should be a valid dictionary"),
        (altered(error={"code": "x"}), "error.code"),
    ],
)
def test_a_line_that_cannot_be_used_is_named(write: Write, line: str, said: str) -> None:
    folder = write(altered(), line)
    with pytest.raises(ConfigError) as caught:
        read_recording(folder)
    assert said in str(caught.value)
    assert f"{folder / 'session-1.jsonl'}:4" in str(caught.value)


@pytest.mark.parametrize(
    ("beginning", "said"),
    [
        ((CONNECTION,), "is not the first line of a recording"),
        ((json.dumps({"format": FORMAT, "version": 2}),), "written by a newer version of the gateway (format 2"),
        ((json.dumps({"format": FORMAT, "version": "1"}),), "version"),
        ((), "is empty"),
    ],
)
def test_a_file_that_is_not_a_recording_of_this_version_is_refused(
    write: Write, beginning: tuple[str, ...], said: str
) -> None:
    with pytest.raises(ConfigError, match="session-1") as caught:
        read_recording(write(beginning=beginning))
    assert said in str(caught.value)


def test_a_line_without_end_is_not_read_to_its_end(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_LONGEST_READ", 1_000)
    with pytest.raises(ConfigError, match=r"session-1.jsonl:3: has more than"):
        read_recording(write(altered(result={"content": "x" * 5_000})))


def test_more_lines_than_fit_in_memory_are_refused(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_BYTES", 100)
    with pytest.raises(ConfigError, match="of lines, more than"):
        read_recording(write(altered()))


def test_a_last_line_that_was_not_finished_is_left_out(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    folder = write(altered())
    with (folder / "session-1.jsonl").open("a") as file:
        file.write('{"connection": 1, "meth')
    assert len(read_recording(folder)["it"].exchanges) == 1
    assert "is not complete" in caplog.text


def test_there_is_something_to_read(folder: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such folder"):
        read_recording(folder)
    folder.mkdir()
    with pytest.raises(ConfigError, match=r"has no recording: no session-\*\.jsonl"):
        read_recording(folder)


@pytest.mark.skipif(os.name != "posix", reason="links need no privilege on POSIX alone")
def test_links_are_not_followed(write: Write, tmp_path: Path) -> None:
    folder = write(altered())
    (tmp_path / "elsewhere").write_text("private")
    (folder / "session-2.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match=r"session-2.jsonl: is a link"):
        read_recording(folder)
    (folder / "media").symlink_to(tmp_path)
    with pytest.raises(ConfigError, match="media: is a link"):
        Recorder(RecordOptions(folder), Settings())


def referring(folder: Path, reference: dict[str, Any]) -> Any:
    return without_files({"content": [reference]}, folder)


def test_content_is_read_only_if_it_is_what_its_name_says(folder: Path, tmp_path: Path) -> None:
    (folder / "media").mkdir(parents=True)
    kept: list[ContentFile] = []
    value = with_files({"type": "image", "mimeType": "image/png", "data": "aGVsbG8="}, kept.append)
    ((name, content),) = kept
    assert value["data"] == {"$file": name, "as": "base64"}
    with pytest.raises(ConfigError, match=r"cannot be read: .*copy a recording with its folder media"):
        without_files(value, folder)
    (folder / name).write_bytes(content + b"!")
    with pytest.raises(ConfigError, match="was changed: its content has another digest"):
        without_files(value, folder)
    (folder / name).write_bytes(content)
    assert without_files(value, folder)["data"] == "aGVsbG8="
    (tmp_path / "elsewhere").write_bytes(content)
    (folder / name).unlink()
    (folder / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="is a link"):
        without_files(value, folder)
    (folder / name).unlink()
    (folder / name).write_bytes(content)
    with pytest.raises(ConfigError, match='"as" is None'):
        referring(folder, {"$file": name})


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/etc/passwd", "media/../session-1.jsonl", "media/x.png", 7, None]
)
def test_no_other_file_is_read(folder: Path, name: Any) -> None:
    (folder / "media").mkdir(parents=True)
    with pytest.raises(ConfigError, match="is not the name of a file of a recording"):
        referring(folder, {"$file": name, "as": "text"})


def test_a_folder_with_other_files_is_not_recorded_into(folder: Path) -> None:
    folder.mkdir()
    (folder / "thesis.txt").write_text("mine")
    with pytest.raises(ConfigError, match="is not empty, and not a recording"):
        Recorder(RecordOptions(folder), Settings())
    assert [one.name for one in folder.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(
    "value",
    [
        {"data": "not base64", "blob": "AAA"},
        {"data": "", "text": "\ud800 half a pair" * 9_000},
        {"text": "☃" * 70_000, "list": [1, 1.5, 10**30, None, True, {"$file": 1, "$$file": "media/x", "as": 2}]},
        {"mimeType": ["no", "text"], "data": "AAAA"},
    ],
)
def test_every_value_is_the_same_again(folder: Path, value: dict[str, Any]) -> None:
    (folder / "media").mkdir(parents=True)

    def keep(file: ContentFile) -> None:
        (folder / file.name).write_bytes(file.content)

    line = Exchange(connection=1, method="x", result=with_files(value, keep)).text()
    assert len(line) < 10_000
    assert without_files(json.loads(line.encode("utf-8"))["result"], folder) == value


def test_lists_are_those_of_a_host_with_the_same_capabilities(write: Write) -> None:
    def connection(number: int, capabilities: dict[str, Any], tool: str) -> list[str]:
        about = {"connection": number}
        return [
            json.dumps(about | {"upstream": "it", "capabilities": capabilities}),
            json.dumps(about | {"method": "initialize", "result": {"of": tool}}),
            json.dumps(about | {"method": "tools/list", "result": {"tools": ["older"]}}),
            json.dumps(about | {"method": "tools/list", "result": {"tools": [tool]}}),
        ]

    apps, plain = {"extensions": {"ui": {}}}, dict[str, Any]()
    folder = write(*connection(1, apps, "panel"), *connection(2, plain, "text"), beginning=(HEADER,))
    upstream = read_recording(folder)["it"]
    for capabilities, tool in ((apps, "panel"), (plain, "text"), ({"roots": {}}, "text")):
        replayed = ReplayedConnection(upstream, capabilities)
        assert replayed.find("tools/list", {}).result == {"tools": [tool]}
        assert replayed.find("initialize", {}).result == {"of": tool}


def stored(folder: Path, value: Any) -> dict[str, str]:
    """A reference to a JSON value in a file of the recording."""
    files: list[ContentFile] = []
    reference = whole_file(value, files.append)
    (folder / files[0].name).parent.mkdir(exist_ok=True)
    (folder / files[0].name).write_bytes(files[0].content)
    return reference


def test_files_that_refer_to_files_many_times_over_are_bounded(write: Write, folder: Path) -> None:
    folder.mkdir()
    reference = stored(folder, "x")
    for _ in range(9):
        reference = stored(folder, [reference] * 10)
    recorded = read_recording(write(altered(result={"content": reference})))["it"]
    with pytest.raises(ConfigError, match="files have more than 268,435,456 bytes together"):
        recorded.result_of(recorded.exchanges[0])


def test_what_json_has_not_is_replaced(write: Write) -> None:
    recorded = read_recording(write(altered(result={"content": [], "number": float("nan"), "text": "\ud800"})))["it"]
    assert recorded.result_of(recorded.exchanges[0]) == {"content": [], "number": None, "text": "\ufffd"}


@pytest.mark.anyio
async def test_the_data_of_an_error_is_whole_again(folder: Path) -> None:
    data = {"log": "x" * 100_000, "$file": "a name of theirs"}
    recorder = Recorder(RecordOptions(folder), Settings())
    async with recorder:
        connection = await recorder.connected("it", "stdio", {}, UpstreamSettings(command="x"))
        error = RefusalPart(code=1, message="no", data=data)
        await connection.record(Exchange(connection=1, method="tools/call", params={"name": "x"}, error=error))
    replayed = UpstreamSettings(replay=folder)
    subject = Subject("it", replayed, Secrets(replayed))
    async with open_replay(subject, {}) as replay:
        with pytest.raises(MCPError) as caught:
            await replay.send_raw_request("tools/call", {"name": "x"})
    assert caught.value.error.data == data


@pytest.mark.anyio
async def test_secrets_are_hidden_in_names_of_members_and_in_remedies(folder: Path) -> None:
    upstream = UpstreamSettings(url="https://it.example/mcp", headers={"Authorization": "Bearer sesame-123"})
    recorder = Recorder(RecordOptions(folder), Settings())
    async with recorder:
        connection = await recorder.connected("it", "http", {}, upstream)
        result = {"content": [], "structuredContent": {"sesame-123": 1}}
        await connection.record(Exchange(connection=1, method="tools/call", params={"name": "x"}, result=result))
        failure = FailurePart(kind="UpstreamLost", code="lost", message="x", remedy="send sesame-123")
        await connection.record(Exchange(connection=1, method="tools/call", params={"name": "x"}, failure=failure))
    assert recorder.exchanges == 2
    assert "sesame" not in recorder.path.read_text("utf-8")
