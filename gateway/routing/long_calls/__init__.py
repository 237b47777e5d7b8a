"""Calls that take longer than their host waits: answered before it gives up, and collected later."""

from gateway.routing.long_calls.early_answers import EarlyAnswers
from gateway.routing.long_calls.registry import LongCalls, open_long_calls

__all__ = ["EarlyAnswers", "LongCalls", "open_long_calls"]
