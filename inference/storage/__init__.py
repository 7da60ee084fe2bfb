"""Where files of this program go, and how they are written. No torch.

Imports ``records.errors`` only.
"""
