"""Changing a profile of a configuration (`[profiles.NAME]`), keeping every other character."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from gateway.core.model.json_values import as_object
from gateway.core.profiles.host_profiles import set_paths
from gateway.core.profiles.profile import Fact, ProfileSource
from gateway.errors import ConfigError, ProfileError
from gateway.hosts.config_files.documents import Document
from gateway.hosts.config_files.toml_edits import NotEditable
from gateway.hosts.config_files.toml_profiles import with_values
from gateway.hosts.config_files.upstream_edits import BY_HAND, ConfigurationText, as_lines


def written_profile(text: ConfigurationText, name: str) -> ProfileSource:
    """Return the profile `name` as it is written.

    Raises:
        ConfigError: there is none of this name, or it does not fit.
    """
    table = _tables(text).get(name)
    if table is None:
        raise ConfigError(f"there is no [profiles.{name}]", where=str(text.file), remedy="it may be read again first")
    try:
        return ProfileSource.model_validate(table)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        where = f"{text.file}: profiles.{name}.{'.'.join(map(str, problem['loc']))}"
        raise ConfigError(problem["msg"], where=where) from None


def with_profile_values(text: ConfigurationText, name: str, changes: Mapping[str, Any]) -> ConfigurationText:
    """Return the configuration with other values of a profile, by dotted path; None: as in the one that it extends.

    A value with evidence loses it with the change.

    Raises:
        ConfigError: there is no such profile, or the text cannot be changed exactly.
    """
    before = written_profile(text, name)
    wanted = changed_source(before, name, changes)
    try:
        after = ConfigurationText(as_lines(text.text, lambda one: with_values(one, name, changes)), text.file)
        others = [{**_data(one), "profiles": {**_tables(one), name: None}} for one in (text, after)]
        if others[0] == others[1] and changed_source(written_profile(after, name), name, {}) == wanted:
            return after
    except (NotEditable, ConfigError, ProfileError):
        pass
    where = f"{text.file}: profiles.{name}"
    raise ConfigError("is written in a way that cannot be edited safely", where=where, remedy=BY_HAND)


def changed_source(source: ProfileSource, name: str, changes: Mapping[str, Any]) -> ProfileSource:
    """Return a profile with other values, by dotted path; None removes one. A changed value has no evidence.

    Raises:
        ProfileError: it sets a value that does not exist.
    """
    facts: list[Fact] = []
    for fact in source.fact:
        values = set_paths(name, ProfileSource(sets=fact.sets))
        left = {path: value for path, value in values.items() if path not in changes}
        if left:
            facts.append(fact.model_copy(update={"sets": left}))
    sets = {**set_paths(name, ProfileSource(sets=source.sets)), **changes}
    given = {path: value for path, value in sets.items() if value is not None}
    return source.model_copy(update={"fact": tuple(facts), "sets": given})


def _tables(text: ConfigurationText) -> Mapping[str, Any]:
    return as_object(_data(text).get("profiles"))


def _data(text: ConfigurationText) -> Mapping[str, Any]:
    return Document(text.text, "json" if text.is_json else "toml", str(text.file)).data
