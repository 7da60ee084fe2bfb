"""Where files of this program go (``folders``), and how they are written (``atomic_write``).

Imports ``records.errors`` only. No torch.
"""
