"""Every running gateway's private door: who runs, what it is doing, and a way to reload or stop it.

Nothing is imported here: a gateway on stdio opens its door only after its host has been answered.
"""
