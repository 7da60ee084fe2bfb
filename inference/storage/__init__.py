"""Where files of this program go, and how they are written.

``folders`` says where, ``atomic_write`` writes in one stroke, and ``named_files`` under a name that
a user gave, which may be a link, a pipe or a device.

Imports ``records.errors`` only. No torch.
"""
