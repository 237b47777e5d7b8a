"""Queries of JSON run in a worker: whatever they ask and however big the JSON is, they end."""

import json
from collections.abc import AsyncGenerator

import pytest

from gateway.config.content_settings import MediaSettings
from gateway.content.media import MediaWorkers
from gateway.content.media.query_json import as_table
from gateway.core.tokens import text_tokens
from gateway.errors import MediaError

pytestmark = pytest.mark.anyio

ROWS = [{"id": number, "name": f"row {number}", "price": number / 2, "at": {"x": number}} for number in range(200)]
DOCUMENT = json.dumps({"items": ROWS, "total": 200}).encode()
MOST = 100_000


@pytest.fixture
async def workers() -> AsyncGenerator[MediaWorkers]:
    async with MediaWorkers(MediaSettings(workers=1, timeout=10)) as opened:
        yield opened


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("total", "200"),
        ("items[3].name", '"row 3"'),
        ("items[:1].at", '[{"x":0}]'),
        ("length(items)", "200"),
        ("nothing.here", "null"),
    ],
)
async def test_a_query_finds_a_part(workers, query, expected):
    assert (await workers.query_json(DOCUMENT, query, MOST)).text == expected


async def test_rows_are_a_table_where_that_is_smaller(workers):
    found = (await workers.query_json(DOCUMENT, "items[?price > `10`].{name: name, price: price}", MOST)).text
    lines = found.splitlines()
    assert lines[:2] == ["name\tprice", "row 21\t10.5"]
    assert len(lines) == 1 + 179
    as_json = json.dumps([{"name": row["name"], "price": row["price"]} for row in ROWS[21:]], separators=(",", ":"))
    assert text_tokens(found) <= 0.85 * text_tokens(as_json)


def test_cells_cannot_be_mistaken():
    rows = [
        {"a": "1", "b": 1, "c": None, "d": "null", "e": "two\twords", "f": " x"},
        {"a": "", "b": True, "c": "plain", "e": "line\nbreak", "f": 'a "quote"'},
    ]
    assert (as_table(rows) or "").splitlines() == [
        "a\tb\tc\td\te\tf",
        '"1"\t1\tnull\t"null"\t"two\\twords"\t" x"',
        '""\ttrue\tplain\t\t"line\\nbreak"\t"a \\"quote\\""',
    ]


@pytest.mark.parametrize("rows", [[], [{"a": 1}], [{"a": 1}, 2], [{"a": [1]}, {"a": 2}], {"a": 1}, [{}, {}]])
def test_what_is_no_table(rows):
    assert as_table(rows) is None


@pytest.mark.parametrize(
    ("content", "query", "cause"),
    [
        (DOCUMENT, "items[", "query is not valid"),
        (DOCUMENT, "", "query is not valid"),
        (DOCUMENT, "sum(items)", "query is not valid"),
        (DOCUMENT, "(" * 2_000, "query is"),
        (DOCUMENT, "items[]", "at most 1,000 can be read"),
        (b"plain words", "a", "not JSON"),
        (b"[" * 10_000 + b"]" * 10_000, "[0]", "nested too deeply"),
        (b"\xff\xfe", "a", "not JSON|cannot be decoded"),
    ],
)
async def test_what_cannot_be_asked_says_why(workers, content, query, cause):
    with pytest.raises(MediaError, match=cause):
        await workers.query_json(content, query, 1_000)


async def test_a_query_that_never_ends_is_ended_and_the_next_one_is_answered():
    async with MediaWorkers(MediaSettings(workers=1, timeout=2, memory_bytes=512 * 1024 * 1024)) as workers:
        with pytest.raises(MediaError):
            await workers.query_json(DOCUMENT, "[@,@][]|" * 200 + "@", 1_000)
        assert (await workers.query_json(DOCUMENT, "total", MOST)).text == "200"


async def test_a_query_that_takes_too_long_is_named_as_one():
    async with MediaWorkers(MediaSettings(workers=1, timeout=0.05)) as workers:
        rows = b"[" + b",".join([b'{"id": 1}'] * 200_000) + b"]"
        with pytest.raises(MediaError, match=r"^the query took longer than 0\.05 s") as caught:
            await workers.query_json(rows, "sort_by(@, &id)", MOST)
    assert "ask for less" in str(caught.value.remedy)


async def test_json_of_50_mb_is_asked(workers):
    big = b'{"rows": [' + b",".join([b'{"id": 1, "text": "%s"}' % (b"x" * 1_000)] * 50_000) + b"]}"
    assert len(big) > 50_000_000
    assert (await workers.query_json(big, "length(rows)", MOST)).text == "50000"
