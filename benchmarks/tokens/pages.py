"""Tables in the pages of the documentation, between a line that says who writes them and one that ends them."""

from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
_BEGIN, _END = "<!-- {name}:begin (written by python -m benchmarks.tokens --write) -->\n", "<!-- {name}:end -->"


def write_table(page: str, name: str, table: str) -> None:
    """Put a table where a page of docs/ has its place.

    Raises:
        ValueError: the page has no such place.
    """
    path, begin, end = DOCS / page, _BEGIN.format(name=name), _END.format(name=name)
    text = path.read_text("utf-8")
    if begin not in text or end not in text:
        raise ValueError(f"{path} has no place for the table {name!r}")
    before, _, rest = text.partition(begin)
    path.write_text(before + begin + table + rest[rest.index(end) :], "utf-8")
