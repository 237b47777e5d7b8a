"""Put lowered results in place of the pieces of a request."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from gateway.core.model_apis.requests.found_results import RepairedTurn, Where
from gateway.core.model_apis.requests.observations import copied_for, put_observation
from gateway.core.model_apis.requests.request_edits import RequestApi, Target, value_at, with_copies


def splice(
    request: Mapping[str, Any], turns: Sequence[RepairedTurn], form: RequestApi, target: Target
) -> dict[str, Any]:
    """Replace the pieces of a request by the answers. Everything else in it stays unchanged.

    `form` is the API that the request is written in; `target` is the API that the answers are for, whose messages have
    the same form, with its own parts.
    """
    holders = [piece.where[:-1] for turn in turns for piece, _ in turn.answers]
    ways = [way for turn in turns for piece, _ in turn.answers for way in copied_for(request, piece)]
    spliced: dict[str, Any] = with_copies(request, [(), *holders, *ways, *(turn.after[:-1] for turn in turns)])
    # From the end backwards, so that insertions do not move places that are still to be replaced.
    for turn in sorted(turns, key=_position, reverse=True):
        piece, answer = turn.answers[0]
        if piece.into is not None:
            put_observation(spliced, piece, answer, target)
        else:
            _put_turn(spliced, turn, form, target)
    return spliced


def _position(turn: RepairedTurn) -> Where:
    piece = turn.answers[0][0]
    if piece.into is None:
        return turn.after
    return piece.where if piece.where[: len(piece.into)] == piece.into else piece.into


def _put_turn(spliced: Any, turn: RepairedTurn, form: RequestApi, target: Target) -> None:
    elements, at = value_at(spliced, turn.after[:-1]), cast("int", turn.after[-1])
    taken = sorted((index for piece, _ in turn.answers for index in piece.taken), reverse=True)
    _delete(elements, [index for index in taken if index >= at])
    if turn.follow_ups or turn.carried:
        elements[at:at] = form.follow_up(turn, target.write_turn)
    for piece, answer in reversed(turn.answers):
        form.put_result(value_at(spliced, piece.where[:-1]), piece.where[-1], answer, target.write_turn)
    _delete(elements, [index for index in taken if index < at])


def _delete(elements: list[Any], indices: Sequence[int]) -> None:
    """Delete elements of a list, the last of them first."""
    for index in indices:
        del elements[index]
