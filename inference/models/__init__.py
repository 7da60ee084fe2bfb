"""From a model's name to a ready model, and from its modules and config to its sizes.

May import ``records``, ``storage``, ``kernels`` and ``counting``. Read ``catalog``, ``model_files``
(from a name to files), ``loading`` (from files to a ready model), ``shapes`` (from a model to a
``ModelShape``). ``tokenization`` turns text to ids and back in the app process, and
``process_memory`` has the limits of both processes, without torch.
"""
