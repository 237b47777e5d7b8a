"""Replies as each model API writes them: whole, as a stream of events, or as a refusal."""
