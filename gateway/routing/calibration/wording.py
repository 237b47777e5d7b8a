"""Sentences that the calibration tools address to the model and, through it, to the user."""

from gateway.core.profiles.calibrate_profile import PARTS, REPORT_TOOL, SHOW_TOOL, TEXTS

_NUMBERS = {part: number for number, part in enumerate(PARTS, 1)}

_WHAT = {
    "sound": (
        "Listen: there are five groups of tones. How many tones each group has is one digit of the code, "
        "in the order of the groups."
    ),
    "a document": "A code is drawn on the page of the document, in large digits.",
    "an error": "This result is an error, on purpose. Its text and its picture may hold one code each.",
    "a large picture": "One code fills the picture; another one, very small, is in its upper left corner.",
}


def instruction(part: str) -> str:
    """The first text of a part: what to look for, and what to do next."""
    usual = "Codes stand in this text, far apart." if part in TEXTS else "Each text and each picture may hold one code."
    what = _WHAT.get(part, usual)
    return (
        f"Calibration, part {_NUMBERS[part]} of {len(PARTS)}: {part}. {what} A code has 5 digits. "
        f"Call {REPORT_TOOL} now with all the codes that you can really read here, or with an empty list. "
        "Open no files, decode nothing, and do not guess: a guessed code counts as not seen."
    )


def go_on(count: int, left: int) -> str:
    """The answer to a report while parts are left."""
    return f"Noted: {_codes(count)}. Go on: call {SHOW_TOOL} ({_parts(left)} left)."


def wait_for_user(count: int) -> str:
    """The answer to the last report if some codes were not read."""
    return (
        f"Noted: {_codes(count)}. Some hosts show pictures to the model only after the user's next message. "
        'So now end your turn with the words: "Please answer: go on." When the user has answered, look at all the '
        f"results of {SHOW_TOOL} above again, and call {REPORT_TOOL} with after_user_message true and every code that "
        "you can read now and have not reported yet, or with an empty list. Do not call it before."
    )


def not_yet(left: int) -> str:
    """The answer to a report marked `after_user_message` while parts are left."""
    return f"Not yet: {_parts(left)} left. Call {SHOW_TOOL} first."


WAIT = (
    "All parts are reported. End your turn, wait for the user's answer, and then call this tool with "
    "after_user_message true."
)

NOTHING_SHOWN = f"Nothing has been shown yet. Call {SHOW_TOOL} first."

REFUSED = (
    "The calibration is over, without a profile: not even the code in plain text was reported, so nothing can be "
    "concluded. Tell the user; `mcp-gateway calibrate` starts it again."
)


WHY_NOT_USED = "another one is chosen explicitly, or the host's name does not tell it from others"

OVER = "The calibration of this host is over. `mcp-gateway calibrate` starts it again."


def finished(name: str, place: str, learned: list[str], *, used: bool) -> str:
    """The last answer. `used`: whether the profile is in force for this host from now on."""
    use = (
        f"From now on the profile {name} is used for this host"
        if used
        else f"Its profile {name} has to be chosen with --profile or gateway.profile: {WHY_NOT_USED}"
    )
    lines = "".join(f"\n- {each}" for each in learned)
    return f"The calibration is done. {use}; it is in {place}. What could be read:{lines}"


def unsaved(why: str) -> str:
    """The last answer if the profile could not be saved."""
    return f"The calibration is done, but its profile could not be kept: {why}. Tell the user."


def _codes(count: int) -> str:
    return "1 code" if count == 1 else f"{count} codes"


def _parts(count: int) -> str:
    return "1 part is" if count == 1 else f"{count} parts are"
