"""Runs to numbers: latency, goodput, energy, and what the device did. Pure, no torch.

May import ``records`` and ``counting``. Read ``latency``; the others stand alone.
"""
