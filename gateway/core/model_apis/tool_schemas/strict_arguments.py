"""Arguments that a model wrote under a strict schema, in the form that the tool's own schema has.

A strict schema makes every property required, so a model says null for one that it leaves out, and has no place for
values of any shape, so those are JSON text. `strict_schemas` builds one reader for each place where that happens.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gateway.core.model.json_values import is_dict, is_list, is_object


class Reader(Protocol):
    """How the value at one place of a strict schema is read."""

    def fits(self, value: Any) -> bool:
        """Whether the value may have been written under this reader's schema. Decides between branches."""
        ...

    def read(self, value: Any) -> Any:
        """The value as the tool takes it. What does not fit stays as it is: the server checks its own arguments."""
        ...


@dataclass(frozen=True)
class Plain:
    """A value that both schemas write alike: one of these JSON types, or exactly one of `allowed`."""

    types: frozenset[str]
    allowed: Sequence[Any] | None = None

    def fits(self, value: Any) -> bool:
        """By type, and by the value where the schema lists values."""
        if self.allowed is not None and not any(_same(value, one) for one in self.allowed):
            return False
        return not self.types or bool(types_of(value) & self.types)

    def read(self, value: Any) -> Any:
        """The value itself."""
        return value


@dataclass(frozen=True)
class JsonText:
    """A value of any shape, which the model writes as JSON text."""

    def fits(self, value: Any) -> bool:
        """Every text."""
        return isinstance(value, str)

    def read(self, value: Any) -> Any:
        """The value that the text is; text that is not JSON is taken for the value itself."""
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
        """An object with these names and no others, and with the plain values that it has to have.

        What is nested is not looked at: trying every branch at every level would cost exponentially many steps.
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
        """Every array."""
        return isinstance(value, list)

    def read(self, value: Any) -> Any:
        """Each item read."""
        return [self.reader.read(one) for one in value] if is_list(value) else value


@dataclass(frozen=True)
class Branches:
    """A value of one of several schemas."""

    readers: Sequence[Reader]

    def fits(self, value: Any) -> bool:
        """Whether it fits any of them."""
        return any(reader.fits(value) for reader in self.readers)

    def read(self, value: Any) -> Any:
        """Read by the first that it fits."""
        return next((reader.read(value) for reader in self.readers if reader.fits(value)), value)


@dataclass(frozen=True)
class Defined:
    """A value of a definition, which may contain itself: its reader is looked up when there is a value."""

    find: Callable[[], Reader]

    def fits(self, value: Any) -> bool:
        """As the definition says."""
        return self.find().fits(value)

    def read(self, value: Any) -> Any:
        """As the definition says."""
        return self.find().read(value)


@dataclass(frozen=True)
class Wrapped:
    """All arguments as one JSON text in a property of its own, for a tool that takes properties of any name."""

    name: str

    def fits(self, value: Any) -> bool:
        """An object with that property."""
        return isinstance(value, Mapping) and self.name in value

    def read(self, value: Any) -> Any:
        """The object that the text is."""
        if not is_object(value):
            return value
        inner = JsonText().read(value.get(self.name))
        return inner if is_dict(inner) else value


def types_of(value: Any) -> set[str]:
    """The names that JSON Schema has for the type of a value: 1.0 is an integer too."""
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
