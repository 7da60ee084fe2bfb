"""The engine process, and every message that it gets and sends.

May import all of ``inference`` but ``bench`` and ``commands``. Read ``messages``, ``client`` (the
app's end), ``worker`` (the engine's end), ``idle_work`` (what it does while no command comes),
``step_gate`` (pause, single step, pace, stop), ``runner`` (one run from start to end),
``telemetry``; ``headless`` runs the same without a process or a page. The app's side
(``messages``, ``client``, ``orders``) loads no torch.
"""
