"""The control socket of every running gateway: list gateways, show their status, reload or stop them.

This module imports nothing, because a gateway on stdio opens its control socket only after answering its host.
"""
