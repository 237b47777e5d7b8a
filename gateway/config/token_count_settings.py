"""The settings of token counts: `[tokens]`."""

from gateway.config.section import Section


class TokenCountSettings(Section):
    """What results cost the models of hosts, in tokens (docs/tokens.md)."""

    count: bool = False
    """Count each result for the log and the metrics. The console counts what it shows, in any case."""
