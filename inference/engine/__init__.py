"""Prefill and decode: one loop over a model and its cache, as a generator of ``StepEvent``.

May import ``records``, ``kernels`` and ``models``. Read ``loop`` (the generator), ``scheduler``
(which request runs next; no torch), ``batch`` (the rows of a run), ``backend`` (one forward pass,
the only file that feeds a cache), ``sampling``, ``clock``; then caches, attention capture and CUDA
graphs when something needs them.
"""
