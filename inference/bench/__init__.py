"""The speed of this program beside the library's ``generate()`` and a bare loop, CPU and GPU.

May import all of ``inference`` but ``commands``. Read ``rounds`` (how subjects take turns and are
compared), ``subjects`` (what takes turns), ``sections`` (what is measured).
"""
