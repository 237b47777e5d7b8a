"""What the log says of the profiles that hosts get: once, and again only if it is another."""

from gateway.config.builtin_profiles import builtin_profiles
from gateway.config.gateway_settings import GatewaySettings
from gateway.core.model.caller import Caller
from gateway.routing.profile_choices import ProfileChoices


def test_a_profile_is_told_once_until_changed_settings_choose_another(caplog):
    caplog.set_level("INFO")
    choices = ProfileChoices(builtin_profiles(), GatewaySettings())
    caller = Caller(client_name="claude-code", client_version="2")
    for settings in (GatewaySettings(), GatewaySettings(name="other"), GatewaySettings(profile="codex")):
        choices.profile_of(caller)
        choices.reconfigure(builtin_profiles(), settings)
        choices.profile_of(caller)
    told = [record.message.partition(": ")[2].partition(",")[0] for record in caplog.records]
    assert told == ["profile claude-code", "profile codex"]
