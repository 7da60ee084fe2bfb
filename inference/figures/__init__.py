"""Runs to numbers: latency, goodput, and what the device did. Pure, no torch.

May import ``records`` and ``counting``.
"""
