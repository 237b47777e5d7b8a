"""A request with what its pieces were lowered to in their places."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from gateway.core.model_apis.requests.found_results import Dialect, RepairedTurn, Where, Write, value_at, with_copies
from gateway.core.model_apis.requests.observations import WritePart, copied_for, put_spoken


def splice(
    request: Mapping[str, Any], turns: Sequence[RepairedTurn], dialect: Dialect, write: Write, part: WritePart
) -> dict[str, Any]:
    """The request with the answers in place of the pieces. Everything else in it is as it was.

    `write` writes the results of tools, `part` one part of a user's message.
    """
    holders = [piece.where[:-1] for turn in turns for piece, _ in turn.answers]
    ways = [way for turn in turns for piece, _ in turn.answers for way in copied_for(request, piece)]
    spliced = with_copies(request, [(), *holders, *ways, *(turn.after[:-1] for turn in turns)])
    # From the end on, so that what is put in moves nothing that is still to be found.
    for turn in sorted(turns, key=_position, reverse=True):
        piece, answer = turn.answers[0]
        if piece.into is not None:
            put_spoken(spliced, piece, answer, part)
        else:
            _put_turn(spliced, turn, dialect, write)
    return cast("dict[str, Any]", spliced)


def _position(turn: RepairedTurn) -> Where:
    piece = turn.answers[0][0]
    if piece.into is None:
        return turn.after
    return piece.where if piece.where[: len(piece.into)] == piece.into else piece.into


def _put_turn(spliced: Any, turn: RepairedTurn, dialect: Dialect, write: Write) -> None:
    elements, at = value_at(spliced, turn.after[:-1]), cast("int", turn.after[-1])
    taken = sorted((index for piece, _ in turn.answers for index in piece.taken), reverse=True)
    _delete(elements, [index for index in taken if index >= at])
    if turn.follow_ups or turn.carried:
        elements[at:at] = dialect.follow_up(turn, write)
    for piece, answer in reversed(turn.answers):
        dialect.put(value_at(spliced, piece.where[:-1]), piece.where[-1], answer, write)
    _delete(elements, [index for index in taken if index < at])


def _delete(elements: list[Any], indices: Sequence[int]) -> None:
    """Take out elements of a list, the last of them first."""
    for index in indices:
        del elements[index]
