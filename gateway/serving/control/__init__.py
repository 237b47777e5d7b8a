"""The control socket of every running gateway: who runs, what it is doing, and a way to reload or stop it.

Nothing is imported here: a gateway on stdio opens its control socket only after its host has been answered.
"""
