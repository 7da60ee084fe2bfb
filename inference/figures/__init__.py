"""Runs to numbers: latency, goodput, energy, and what the device did. Pure, no torch.

May import ``records`` and ``counting``. Read ``disturbance`` (which steps other programs
disturbed), then ``latency``; the others stand alone.
"""
