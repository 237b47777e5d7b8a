"""The audit trail: who asked for what, what was decided, and what the model was shown, in lines chained by hashes."""

from gateway.telemetry.audit.entry import NOT_AUDITED, AuditEntry

__all__ = ["NOT_AUDITED", "AuditEntry"]
