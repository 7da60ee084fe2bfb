"""The speed of this program beside the library's ``generate()`` and a bare loop, CPU and GPU.

May import all of ``inference`` but ``commands``. Read ``rounds`` (how subjects take turns and are
compared), ``subjects`` (what takes turns, the library's ``generate`` among it), ``sections`` and
``page`` (what is measured), ``report`` (all of it), ``tables``. ``gpu_report`` goes through one
device with the same spreads and the same ``generate``: ``gpu_setup``, ``gpu_checks``,
``gpu_speeds``.
"""
