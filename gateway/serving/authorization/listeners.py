"""Who is told of what happens at the authorization server, such as the audit trail."""

from collections.abc import Callable
from dataclasses import dataclass

from gateway.serving.authorization.approvals import Approval


def _nobody_listens(*_: object) -> None:
    """Do nothing."""


@dataclass
class Listeners:
    """Functions to be called. They are set later than the server is made: the gateway is opened after it."""

    login_refused: Callable[[str, str, str], object] = _nobody_listens
    """Called with the principal ("" for a name that nobody has), the address, and why."""
    host_approval: Callable[[str, str, str, str, str], object] = _nobody_listens
    """Called with the principal, what became of an approval, its id, and the host: its name, and where it goes to."""

    def tell(self, approval: Approval, outcome: str) -> None:
        """Tell what became of an approval."""
        self.host_approval(approval.principal, outcome, approval.id, approval.client_name, approval.redirect)
