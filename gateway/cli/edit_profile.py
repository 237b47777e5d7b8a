"""Editing a profile from a terminal, for `mcp-gateway profiles set`."""

from collections.abc import Sequence
from pathlib import Path

from gateway.cli.command_context import settings_if_any
from gateway.cli.configuration_file import say_if_taken_over
from gateway.cli.exit_codes import DONE
from gateway.cli.terminal import say
from gateway.config.builtin_profiles import load_profiles
from gateway.core.profiles.match_profile import find_profile
from gateway.core.profiles.profile_texts import changed_values, given_values
from gateway.hosts.config_files.configuration_file import ConfigurationFile
from gateway.hosts.config_files.edit_profile import edit_profile
from gateway.hosts.config_files.register_gateway import unified
from gateway.serving.control.records import running


def edit_and_say(name: str, values: Sequence[str], new_name: str, config: Path | None, *, dry_run: bool) -> int:
    """Change a profile, or show the difference, and say what became of it; return the exit code.

    Raises:
        ProfileError: there is no such profile, or a value does not fit.
        InvalidRequest: the new name cannot be used.
        ConfigError: the file cannot be changed.
    """
    loaded = settings_if_any(config)
    profile = find_profile(load_profiles(loaded.settings), name)
    changes = changed_values(profile, given_values(values))
    edited = edit_profile(loaded.settings, loaded.path, profile.name, changes, new_name)
    path = edited.check_folder()
    if not edited.is_changed:
        say(f"{edited.name}: nothing is changed, these are its values already")
        return DONE
    if dry_run:
        say(unified(edited.before, edited.text, path))
        return DONE
    edited.write()
    say(f"{path}: {edited.name} {'changed' if edited.content is not None else 'written'}")
    if edited.is_configuration:
        say_if_taken_over(ConfigurationFile.read(path))
    elif running():
        say("`mcp-gateway reload` lets a running gateway use it")
    return DONE
