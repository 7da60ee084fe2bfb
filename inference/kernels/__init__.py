"""The CPU decode kernels: built for this processor, checked, installed into a model, taken out.

May import ``records`` and ``storage``. Read ``build`` (from C to a loaded library), ``install``
(which layers of a model use it), ``fused_layers`` (consecutive decoder layers as one call) and
``cache_room`` (the K/V rows those layers write into); ``kernels.c`` names its headers.
"""
