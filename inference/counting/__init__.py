"""What a step must do: sizes, FLOPs and bytes, rooflines, GPU specifications, what-if. No torch.

May import ``records``. Read ``costs`` (one step of a ``ModelShape``), ``roofline`` (a step under
two roofs), ``what_if`` and ``batch_predictions`` (a device that is not here), ``parts`` (what
vendors state). The sizes of a live model are read in ``models.shapes``; ``shape_jobs`` asks for
them in a process of its own.
"""
