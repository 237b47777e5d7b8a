"""Names that the gateway itself gives: its tools, its prompt, fields of its forms and of its results."""

VIEW_TOOL = "gateway_view"
"""The gateway's own tool that shows a stored image: whole, scaled, or a part of it."""

READ_TOOL = "gateway_read"
"""The gateway's own tool that reads stored text, or a resource, piece by piece."""

CONTENT_PROMPT = "gateway_content"
"""The gateway's own prompt that lists the content which can be passed to tools."""

LOGIN_TOOL = "gateway_login"
"""The gateway's own tool that asks for the login at an upstream."""

PUT_TOOL = "gateway_put"
"""The gateway's own tool that stores content under a handle."""

FIND_TOOL = "gateway_find_tools"
"""The gateway's own tool that finds others, for hosts whose list would be too long."""

CALL_TOOL = "gateway_call_tool"
"""The gateway's own tool that calls what the other has found."""

APPROVE_TOOL = "gateway_approve"
"""The gateway's own tool that approves a call, if the configuration wants one."""

APPROVAL_ANSWER, APPROVAL_YES, APPROVAL_NO = "decision", "allow", "do not allow"
"""The field of the form that asks for an approval, and its values."""

WAIT_TOOL = "gateway_wait"
"""The gateway's own tool that waits for a call which took longer than its host waits."""

CANCEL_TOOL = "gateway_cancel"
"""The gateway's own tool that ends such a call."""

RUN_TOOL = "gateway_run"
"""The gateway's own tool that runs a script which calls other tools, if the configuration wants it."""

SKILL_TOOL = "gateway_skill"
"""The gateway's own tool that lists and loads skills, for hosts that cannot do so themselves."""

OWN_TOOLS = frozenset({VIEW_TOOL, READ_TOOL, PUT_TOOL})
"""The gateway's own tools that every host has whose profile allows them."""

LEFT_OUT = "gateway_left_out"
"""The member of structured content that says what was left out of it."""
