"""Converting arguments that a model wrote under a strict schema to the form of the tool's own schema.

A strict schema makes every property required, so a model writes null for one that it leaves out, and cannot describe
values of any shape, so those are JSON text. `strict_schemas` builds one reader for each place where that happens.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gateway.core.model.json_values import is_dict, is_list, is_object


class Reader(Protocol):
    """Reads the value at one place of a strict schema."""

    def fits(self, value: Any) -> bool:
        """Whether the value may have been written under this reader's schema. Used to choose between branches."""
        ...

    def read(self, value: Any) -> Any:
        """Return the value for the tool. What does not fit is left as it is: the server checks its own arguments."""
        ...


@dataclass(frozen=True)
class Plain:
    """A value that both schemas write alike: one of these JSON types, or exactly one of `allowed`."""

    types: frozenset[str]
    allowed: Sequence[Any] | None = None

    def fits(self, value: Any) -> bool:
        """Check the type, and the value if the schema lists values."""
        if self.allowed is not None and not any(_same(value, one) for one in self.allowed):
            return False
        return not self.types or bool(types_of(value) & self.types)

    def read(self, value: Any) -> Any:
        """Return the value itself."""
        return value


@dataclass(frozen=True)
class JsonText:
    """A value of any shape, which the model writes as JSON text."""

    def fits(self, value: Any) -> bool:
        """True for every string."""
        return isinstance(value, str)

    def read(self, value: Any) -> Any:
        """Parse the text; text that is not JSON counts as the value itself."""
        try:
            return json.loads(value) if isinstance(value, str) else value
        except (ValueError, RecursionError):
            return value


@dataclass(frozen=True)
class Properties:
    """An object; `optional` are the names that the tool does not require."""

    readers: Mapping[str, Reader]
    optional: frozenset[str]

    def fits(self, value: Any) -> bool:
        """True for an object with exactly these names, and with the plain values that are required.

        Nested values are not examined: trying every branch at every level would take exponentially many steps.
        """
        if not is_object(value):
            return False
        return value.keys() == self.readers.keys() and all(self._fits(name, each) for name, each in value.items())

    def _fits(self, name: str, value: Any) -> bool:
        reader = self.readers[name]
        return (value is None and name in self.optional) or not isinstance(reader, Plain) or reader.fits(value)

    def read(self, value: Any) -> Any:
        """The object without the nulls that stand for properties left out."""
        if not is_object(value):
            return value
        kept = {name: each for name, each in value.items() if not (each is None and name in self.optional)}
        return {name: self.readers[name].read(each) if name in self.readers else each for name, each in kept.items()}


@dataclass(frozen=True)
class Items:
    """An array."""

    reader: Reader

    def fits(self, value: Any) -> bool:
        """True for every array."""
        return isinstance(value, list)

    def read(self, value: Any) -> Any:
        """Each item read."""
        return [self.reader.read(one) for one in value] if is_list(value) else value


@dataclass(frozen=True)
class Branches:
    """A value of one of several schemas."""

    readers: Sequence[Reader]

    def fits(self, value: Any) -> bool:
        """Whether the value fits any of them."""
        return any(reader.fits(value) for reader in self.readers)

    def read(self, value: Any) -> Any:
        """Read the value with the first branch that it fits."""
        return next((reader.read(value) for reader in self.readers if reader.fits(value)), value)


@dataclass(frozen=True)
class Defined:
    """A value of a definition, which may contain itself: its reader is looked up when a value is read."""

    find: Callable[[], Reader]

    def fits(self, value: Any) -> bool:
        """Apply the definition's reader."""
        return self.find().fits(value)

    def read(self, value: Any) -> Any:
        """Apply the definition's reader."""
        return self.find().read(value)


@dataclass(frozen=True)
class Wrapped:
    """All arguments as one JSON text in a property of its own, for a tool that accepts properties of any name."""

    name: str

    def fits(self, value: Any) -> bool:
        """True for an object with that property."""
        return isinstance(value, Mapping) and self.name in value

    def read(self, value: Any) -> Any:
        """The object that the text is."""
        if not is_object(value):
            return value
        inner = JsonText().read(value.get(self.name))
        return inner if is_dict(inner) else value


def types_of(value: Any) -> set[str]:
    """Return JSON Schema's names for the type of a value: 1.0 is an integer too."""
    match value:
        case None:
            return {"null"}
        case bool():
            return {"boolean"}
        case str():
            return {"string"}
        case int():
            return {"integer", "number"}
        case float():
            return {"integer", "number"} if value.is_integer() else {"number"}
        case list():
            return {"array"}
        case _:
            return {"object"}


def _same(one: Any, other: Any) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)
