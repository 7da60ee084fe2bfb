"""Runs as they happen: the hub and its registry, the live route, frames. No Streamlit.

May import ``charts`` and the torch-free modules of ``inference``. Read ``live_run``, ``registry``,
``hub``, then ``route`` and ``frames``.
"""
