"""The library: four texts in Markdown beside this file, their parts, and what can be searched and counted in them."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

FOLDER = Path(__file__).parent / "library"
WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
WORDS_PER_MINUTE = 220


@dataclass(frozen=True)
class Section:
    """A heading with the paragraphs below it; the text before the first heading has the document's title."""

    heading: str
    paragraphs: tuple[str, ...]

    @property
    def words(self) -> int:
        """How many words the paragraphs have."""
        return sum(len(WORD.findall(paragraph)) for paragraph in self.paragraphs)


@dataclass(frozen=True)
class Document:
    """A text of the library; `name` is what tools and addresses call it."""

    name: str
    markdown: str

    @cached_property
    def title(self) -> str:
        """The first heading."""
        return self.markdown.partition("\n")[0].removeprefix("# ")

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """The sections in order, the introduction first."""
        _, *parts = re.split(r"^#{1,2} ", self.markdown, flags=re.MULTILINE)
        return tuple(_section(part) for part in parts)

    @property
    def words(self) -> int:
        """How many words the document has, headings left out."""
        return sum(section.words for section in self.sections)

    @property
    def minutes(self) -> int:
        """How long it takes to read, in whole minutes."""
        return max(1, round(self.words / WORDS_PER_MINUTE))


class UnknownDocument(LookupError):
    """There is no document of this name; the message names those that there are."""


@cache
def documents() -> dict[str, Document]:
    """Every document by its name, in alphabetical order."""
    files = sorted(FOLDER.glob("*.md"))
    return {file.stem: Document(file.stem, file.read_text(encoding="utf-8")) for file in files}


def document(name: str) -> Document:
    """One document. Raises UnknownDocument."""
    found = documents().get(name.strip().casefold())
    if found is None:
        raise UnknownDocument(f"there is no document {name[:60]!r}: choose from {', '.join(documents())}")
    return found


@dataclass(frozen=True)
class Hit:
    """A paragraph that was found, with how often it has a word of the query."""

    document: Document
    section: Section
    paragraph: str
    matches: int


def search(query: str, most: int) -> tuple[Hit, ...]:
    """The paragraphs with the words of `query`, those with most different ones first, then by how often."""
    wanted = {word.casefold() for word in WORD.findall(query)}
    found: list[tuple[int, Hit]] = []
    for where, section, paragraph in _paragraphs():
        counts = Counter(word.casefold() for word in WORD.findall(paragraph))
        # A query for "cloud" is meant to find "clouds" as well.
        met = {word: sum(count for form, count in counts.items() if form.startswith(word)) for word in wanted}
        different = sum(1 for count in met.values() if count)
        if different:
            found.append((different, Hit(where, section, paragraph, sum(met.values()))))
    found.sort(key=lambda pair: (-pair[0], -pair[1].matches, pair[1].document.name))
    return tuple(hit for _, hit in found[:most])


def concordance(most_characters: int, around: int = 800) -> str:
    """Every occurrence of every word with the text around it, in alphabetical order.

    Whole entries up to `most_characters`; what did not fit is counted in the last line.
    """
    entries = sorted(_entries(around), key=lambda entry: entry[:3])
    head = f"Concordance: {len(entries):,} words of {len(documents())} documents, each with the text around it.\n"
    reserve = 120
    lines, used = [head], len(head) + reserve
    for position, (word, name, number, context) in enumerate(entries):
        line = f"\n{word} ({name}, word {number:,})\n    {context}\n"
        if used + len(line) > most_characters:
            lines.append(f"\n[{len(entries) - position:,} more entries left out: ask for more characters]\n")
            break
        lines.append(line)
        used += len(line)
    return "".join(lines)


def _entries(around: int) -> Iterator[tuple[str, str, int, str]]:
    for name, found in documents().items():
        flat = " ".join(paragraph for section in found.sections for paragraph in section.paragraphs)
        for number, match in enumerate(WORD.finditer(flat), start=1):
            begin, end = max(0, match.start() - around), min(len(flat), match.end() + around)
            context = f"{flat[begin : match.start()]}[{match.group()}]{flat[match.end() : end]}"
            yield match.group().casefold(), name, number, context


def _paragraphs() -> Iterator[tuple[Document, Section, str]]:
    for found in documents().values():
        for section in found.sections:
            for paragraph in section.paragraphs:
                yield found, section, paragraph


def _section(part: str) -> Section:
    heading, _, body = part.partition("\n")
    return Section(heading.strip(), tuple(" ".join(text.split()) for text in body.split("\n\n") if text.strip()))
