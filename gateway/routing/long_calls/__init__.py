"""Calls that take longer than their host waits: answered before it gives up, and collected later."""

from gateway.routing.long_calls.early_answers import EarlyAnswers, long_call_in
from gateway.routing.long_calls.registry import LongCalls, open_long_calls

__all__ = ["EarlyAnswers", "LongCalls", "long_call_in", "open_long_calls"]
