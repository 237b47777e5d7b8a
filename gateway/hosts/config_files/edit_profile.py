"""Editing a host profile of the user's own: what it becomes, and the file that says so, before anything is written.

A profile of the configuration (`[profiles.NAME]`) is changed there, one in the user's own folder in its file. Of any
other one, a profile of the user's own is made, which extends it and is chosen for the same clients.
"""

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.config.builtin_profiles import builtin_profiles, load_builtin, load_profiles, local_profiles, with_source
from gateway.config.local_profiles import as_toml, local_path
from gateway.config.schema import Settings
from gateway.core.profiles.host_profiles import set_paths, value_at
from gateway.core.profiles.match_profile import find_profile
from gateway.core.profiles.profile import Profile, ProfileSource
from gateway.errors import ConfigError, InvalidRequest, ProfileError
from gateway.hosts.config_files.configuration_file import ConfigurationFile
from gateway.hosts.config_files.files import decoded_text, read_bytes, replace_file
from gateway.hosts.config_files.profile_edits import changed_source, with_profile_values, written_profile

_NAME = re.compile(r"[a-z0-9]++(?:[-_.][a-z0-9]++)*+")
_LONGEST_NAME = 80


@dataclass(frozen=True)
class EditedProfile:
    """A profile as it was edited, not yet written.

    `profile` is what it becomes. `path`: the file that says so, None if there is no folder for it; `content`: what it
    holds now, None if there is none; `text`: what it will hold. `is_configuration`: the file is the gateway's own.
    """

    name: str
    source: ProfileSource
    profile: Profile
    path: Path | None
    content: bytes | None
    text: str
    is_configuration: bool = False

    @property
    def before(self) -> str:
        """The text of the file as it is now."""
        return decoded_text(self.content, self.path or Path())

    @property
    def is_changed(self) -> bool:
        """Whether there is anything to write."""
        return self.text != self.before and bool(self.is_configuration or self.source.sets or self.source.fact)

    @property
    def mark(self) -> str:
        """A digest of what the file holds and of what it will hold."""
        return hashlib.sha256(f"{self.path}\0{self.before}\0{self.text}".encode("utf-8", "surrogatepass")).hexdigest()

    def check_folder(self) -> Path:
        """Return the path of the file. Raises ConfigError if there is no folder for it."""
        return self.path or local_path(os.environ, self.name)

    def write(self) -> Path:
        """Write the file, and return its path.

        Raises:
            ConfigError: there is no folder for it, it cannot be written, or it was changed meanwhile.
        """
        path = self.check_folder()
        replace_file(path, self.text.encode("utf-8"), expected=self.content)
        return path


def profile_in_configuration(settings: Settings, config: Path | None, name: str) -> bool:
    """Whether the profile `name` is one of the configuration file, which can be changed there."""
    return name in settings.profiles and config is not None and config.suffix.lower() != ".json"


def is_own(settings: Settings, config: Path | None, name: str) -> bool:
    """Whether the profile `name` is the user's own, so that it is changed itself."""
    return profile_in_configuration(settings, config, name) or name in local_profiles(settings)


def edit_profile(
    settings: Settings, config: Path | None, name: str, changes: Mapping[str, Any], new_name: str = ""
) -> EditedProfile:
    """Return what the profile `name` becomes with other values, by dotted path; None: as in the one that it extends.

    `config` is the configuration file. `new_name`: the name of a profile that has to be made first. Blocks.

    Raises:
        ProfileError: there is no such profile, or a value does not fit.
        InvalidRequest: the new name cannot be used, or the profile has variants.
        ConfigError: the file that it is in cannot be changed.
    """
    profiles, local = load_profiles(settings), local_profiles(settings)
    profile = find_profile(profiles, name)
    if config is not None and profile_in_configuration(settings, config, profile.name):
        return _in_configuration(settings, config, profile, profiles[profile.lineage[0]], changes)
    source, parent, own_name = local.get(profile.name), profile, profile.name
    if source is None:
        own_name = _new_name(new_name or suggested_name(profile.name), settings, local)
        source = ProfileSource(title=f"{profile.title}, mine", extends=profile.name, match=profile.match)
    elif source.variant:
        raise InvalidRequest(f"the profile {profile.name!r} has variants", remedy="edit its file by hand")
    else:
        parent = profiles[profile.lineage[0]]
    edited, resolved = _resolved(settings, own_name, source, parent, changes)
    try:
        path = local_path(os.environ, own_name)
    except ConfigError:  # its effect can be shown all the same
        path = None
    content = None if path is None else read_bytes(path)
    try:
        text = as_toml(edited)
    except ValueError as error:
        raise ProfileError(f"this cannot be written: {error}") from None
    return EditedProfile(own_name, edited, resolved, path, content, text)


def _in_configuration(
    settings: Settings, config: Path, profile: Profile, parent: Profile, changes: Mapping[str, Any]
) -> EditedProfile:
    file = ConfigurationFile.read(config)
    before, name = file.text, profile.name
    edited, resolved = _resolved(settings, name, written_profile(before, name), parent, changes)
    after = before
    if changes:
        sets = set_paths(name, ProfileSource(sets=edited.sets))
        after = with_profile_values(before, name, {path: sets.get(path) for path in changes})
    return EditedProfile(name, edited, resolved, config, file.content, after.text, is_configuration=True)


def _resolved(
    settings: Settings, name: str, source: ProfileSource, parent: Profile, changes: Mapping[str, Any]
) -> tuple[ProfileSource, Profile]:
    """Return the source with the changes, without those that are as in the parent, and the profile that it becomes."""
    edited = changed_source(source, name, changes)
    resolved = with_source(settings, name, edited)
    kept = {
        path: _plain(value_at(resolved, path)) if path in changes else value
        for path, value in edited.sets.items()
        if path not in changes or value_at(resolved, path) != value_at(parent, path)
    }
    return edited.model_copy(update={"sets": kept}), resolved


def suggested_name(name: str) -> str:
    """Return a name for a user's own profile that extends this one."""
    words = "-".join(re.findall(r"[a-z0-9]++", name.casefold()))[: _LONGEST_NAME - 3].strip("-")
    return f"my-{words}" if words else "mine"


def _new_name(name: str, settings: Settings, local: Mapping[str, ProfileSource]) -> str:
    name = name.strip()
    if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"{name[:_LONGEST_NAME]!r} cannot be the name of a profile",
            remedy="use lower-case letters and digits, with - . or _ between them",
        )
    if name in builtin_profiles() or name in load_builtin() or name in settings.profiles or name in local:
        raise InvalidRequest(f"there is a profile {name!r} already", remedy="edit that one, or give yours another name")
    return name


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
