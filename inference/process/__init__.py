"""The engine process and everything said to it and by it.

May import all of ``inference`` but ``bench`` and ``commands``. Read ``messages`` (what is said),
``client`` (the app's end), ``worker`` (the engine's end), ``step_gate`` (pause, single step, pace,
stop), ``telemetry``; ``headless`` runs the same without a process or a page. The app's side
(``messages``, ``client``, ``orders``) loads no torch.
"""
