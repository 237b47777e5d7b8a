"""Inheritance of profiles from files that hold only differences, for host and model profiles alike. Pure."""

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from gateway.core.near_names import which_name
from gateway.core.profiles.profile import Evidence, FactSource
from gateway.errors import ProfileError

IDENTITY = frozenset({"name", "title", "about", "match", "lineage", "variants", "evidence"})
"""The fields of a profile that are not values to set."""


SourceT = TypeVar("SourceT", bound=FactSource)
ProfileT = TypeVar("ProfileT", bound=BaseModel)


def paths(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Yield every value that a profile of this model may set, as a dotted path."""
    for name, field in model.model_fields.items():
        if not prefix and name in IDENTITY:
            continue
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from paths(field.annotation, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def value_at(profile: BaseModel, path: str) -> Any:
    """Return the value at a dotted path."""
    value: Any = profile
    for part in path.split("."):
        value = getattr(value, part)
    return value


class Resolver(Generic[SourceT, ProfileT]):
    """Resolves sources to profiles of one model. `parent_of` returns the parent of a source, or None."""

    def __init__(self, model: type[ProfileT], parent_of: Callable[[str, SourceT], str | None], shown_by: str) -> None:
        self.paths = tuple(paths(model))
        self._model = model
        self._parent_of = parent_of
        self._shown_by = shown_by

    def resolve(self, sources: Mapping[str, SourceT]) -> dict[str, ProfileT]:
        """Merge every source with all that it extends, in the same order.

        Evidence is stored under the dotted path of its value; a value set without evidence drops its parent's evidence.

        Raises:
            ProfileError: an unknown parent, a circle, an unknown path, or a value that does not fit.
        """
        resolved: dict[str, ProfileT] = {}
        for name in sources:
            for ancestor in reversed(self._lineage(name, sources)):
                if ancestor not in resolved:
                    resolved[ancestor] = self._one(ancestor, sources[ancestor], resolved)
        return {name: resolved[name] for name in sources}

    def set_paths(self, name: str, source: SourceT) -> Mapping[str, Any]:
        """Return the values that the source itself sets, by dotted path; nested tables and dotted keys are equivalent.

        Raises:
            ProfileError: a path that does not exist, or one that is set twice.
        """
        found: dict[str, Any] = {}
        for sets in (*(fact.sets for fact in source.fact), source.sets):
            for path, value in self._flatten(name, sets):
                if path in found:
                    raise ProfileError(f"profile {name!r}: {path} is set twice", remedy="remove one of the two")
                found[path] = value
        return found

    def _lineage(self, name: str, sources: Mapping[str, SourceT]) -> list[str]:
        """Return the profile and all that it extends, nearest first."""
        lineage = [name]
        while (parent := self._parent_of(lineage[-1], sources[lineage[-1]])) is not None:
            if parent in lineage:
                circle = " -> ".join([*lineage, parent])
                raise ProfileError(f"profile {name!r} extends itself: {circle}", remedy="change one `extends`")
            if parent not in sources:
                remedy = which_name(parent, sorted(sources))
                raise ProfileError(f"profile {lineage[-1]!r} extends {parent!r}, which does not exist", remedy=remedy)
            lineage.append(parent)
        return lineage

    def _one(self, name: str, source: SourceT, resolved: Mapping[str, ProfileT]) -> ProfileT:
        parent = resolved.get(self._parent_of(name, source) or "")
        values: dict[str, Any] = {path: value_at(parent, path) for path in self.paths} if parent else {}
        evidence: dict[str, Evidence] = dict(value_at(parent, "evidence")) if parent else {}
        for path, value in self.set_paths(name, source).items():
            values[path] = value
            evidence.pop(path, None)
        for fact in source.fact:
            known = Evidence.model_validate(fact.model_dump(exclude={"sets"}))
            evidence.update({path: known for path, _ in self._flatten(name, fact.sets)})
        identity = {
            "name": name,
            "title": source.title or name,
            "about": source.about or "",
            "match": value_at(source, "match"),
            "lineage": (value_at(parent, "name"), *value_at(parent, "lineage")) if parent else (),
            "evidence": evidence,
        }
        try:
            return self._model.model_validate({**identity, **_nest(values)})
        except ValidationError as error:
            problem = error.errors(include_url=False, include_input=False)[0]
            path = ".".join(str(part) for part in problem["loc"])
            said = problem["msg"].removeprefix("Value error, ")
            words = said[:1].lower() + said[1:]
            raise ProfileError(f"profile {name!r}: {path}: {words}") from None

    def _flatten(self, name: str, sets: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
        """Yield the values of a `sets` table by dotted path."""
        for key, value in sets.items():
            path = f"{prefix}{key}"
            if path in self.paths:
                yield path, value
            elif isinstance(value, Mapping) and any(known.startswith(f"{path}.") for known in self.paths):
                yield from self._flatten(name, value, f"{path}.")  # pyright: ignore[reportUnknownArgumentType]
            else:
                hint = self._hint(path)
                raise ProfileError(f"profile {name!r}: {path!r} is not a value that a profile sets", remedy=hint)

    def _hint(self, path: str) -> str:
        below = [known for known in self.paths if known.startswith(f"{path}.")]
        near = below or get_close_matches(path, self.paths, n=1)
        if not near:
            near = [known for known in self.paths if known.rsplit(".", 1)[-1] == path.rsplit(".", 1)[-1]]
        if not near:
            return self._shown_by
        return f"did you mean {' or '.join(repr(known) for known in near)}?"


def _nest(values: Mapping[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for path, value in values.items():
        *tables, leaf = path.split(".")
        table = nested
        for part in tables:
            table = table.setdefault(part, {})
        table[leaf] = value
    return nested
