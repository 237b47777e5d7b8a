"""The profile in force for each caller: chosen once for each kind of client, and remembered."""

import logging
from collections.abc import Mapping
from dataclasses import replace

from gateway.config.gateway_settings import GatewaySettings
from gateway.core.fact_words import plain
from gateway.core.model.caller import CONSOLE_CLIENT, Caller
from gateway.core.profiles.host_profiles import narrow
from gateway.core.profiles.match_profile import LOOKED_AT, Choice, choose_profile, header_matches, headers_seen
from gateway.core.profiles.profile import Profile
from gateway.core.results.output_variants import for_chosen_outputs

logger = logging.getLogger(__name__)

_CLIENTS = 512
"""Maximum number of clients whose profiles are remembered. Clients choose their own names, so this needs a bound."""


class ProfileChoices:
    """Chooses among `profiles`. `profile` names the one for every host, whatever the settings say."""

    def __init__(self, profiles: Mapping[str, Profile], settings: GatewaySettings, profile: str | None = None) -> None:
        self.profiles = profiles
        self._profile = profile
        self._settings = settings
        self._header_matches = header_matches(profiles)
        self._chosen: dict[tuple[str | None, ...], Choice] = {}
        self._told: dict[tuple[str | None, ...], tuple[str, str]] = {}
        """What the log says of each client: said again only if changed settings change it."""

    def reconfigure(self, profiles: Mapping[str, Profile], settings: GatewaySettings) -> None:
        """Apply changed profiles and settings."""
        self.profiles, self._settings = profiles, settings
        self._header_matches = header_matches(profiles)
        self._chosen.clear()

    @property
    def configured(self) -> str | None:
        """The name of the profile set for every host, if any."""
        return self._profile or self._settings.profile

    def profile_of(self, caller: Caller) -> Profile:
        """Return the profile in force for a caller, as the variant for its model and narrowed to its revision.

        Raises:
            ProfileError: the caller asks for a profile that does not exist.
        """
        return self.choice_of(caller).profile

    def listed_for(self, caller: Caller) -> Profile:
        """Return the profile for listing a caller's tools: the same for every call, whatever model each names."""
        return self.profile_of(caller if caller.model is None else replace(caller, model=None))

    def choice_of(self, caller: Caller) -> Choice:
        """Return the profile in force for a caller, as `profile_of` does, with the reason.

        Raises:
            ProfileError: the caller asks for a profile that does not exist.
        """
        said = (caller.client_name, caller.client_version, caller.user_agent, caller.profile, caller.model)
        texts = (text[:LOOKED_AT] if text is not None else None for text in said)
        of = f"{caller.revision}, choosing" if caller.chooses_outputs else caller.revision
        key = (of, *texts, *headers_seen(self._header_matches, caller))
        chosen = self._chosen.get(key)
        if chosen is None:
            chosen = self._choose(caller, key)
            if len(self._chosen) >= _CLIENTS:
                self._chosen.clear()
            self._chosen[key] = chosen
        return chosen

    def _choose(self, caller: Caller, key: tuple[str | None, ...]) -> Choice:
        choice = choose_profile(self.profiles, caller, self.configured, self._settings.model)
        self._tell(caller, key, choice)
        profile = narrow(choice.profile, caller.revision)
        if caller.chooses_outputs:
            profile = for_chosen_outputs(profile)
        return Choice(profile, choice.because)

    def _tell(self, caller: Caller, key: tuple[str | None, ...], choice: Choice) -> None:
        told = (choice.profile.name, choice.because)
        if self._told.get(key) == told:
            return
        if len(self._told) >= _CLIENTS:
            self._told.clear()
        self._told[key] = told
        client = plain(f"{caller.client_name or 'a client'} {caller.client_version or ''}", 100)
        # The gateway's own clients choose what they want: that says nothing of a host.
        level = logging.DEBUG if caller.client_name == CONSOLE_CLIENT else logging.INFO
        words = "%s, %s: profile %s, because %s"
        logger.log(level, words, client, caller.revision, *told)
