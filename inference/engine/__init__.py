"""Prefill and decode: one loop over a model and its cache, as a generator of ``StepEvent``.

May import ``records``, ``counting``, ``kernels`` and ``models``. Read ``loop`` (the generator),
``scheduler`` (which request runs next), ``batch`` (which request is in which slot and row),
``runners`` (how a policy's moves are carried out), ``backend`` (one forward pass), ``sampling``,
``clock`` and ``run_delay``; then caches, attention capture and CUDA graphs when something needs
them. ``scheduler`` and ``batch`` load no torch.
"""
