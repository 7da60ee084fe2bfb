"""What this device can do: its two roofs, and how a step grows with its tokens and its rows.

May import ``records``, ``storage``, ``counting``, ``models``, ``engine`` and ``figures``. Read
``timings`` (what is measured again), ``ceilings``, ``token_sweep``, ``batch_sweep``;
``ceilings_store`` keeps roofs between runs.
"""
