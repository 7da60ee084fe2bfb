"""What is kept of runs: growing, stored, replayed, compared, exported. No torch.

May import ``records``, ``storage``, ``figures`` and ``models.tokenization``. Read ``trace_builder``
(events to a ``RunTrace``), ``run_file`` (a trace as JSON), ``journals`` and ``store`` (on disk),
``store_room`` (how much of it), ``comparisons``, ``exports``, ``playlists`` (runs in an order).
"""
