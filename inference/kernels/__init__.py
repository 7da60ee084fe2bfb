"""The CPU decode kernels: built for this processor, checked, installed into a model, taken out.

May import ``records`` and ``storage``. Read ``build`` (from C to a loaded library, by ``compiler``,
``kept_library`` and ``abi``), ``install`` (which layers of a model use it), ``model_layers`` (where
its layers are), ``self_check`` (what is compared first), ``fused_layers`` (consecutive decoder
layers as one call), ``wide_products`` (large products of 16-bit numbers),
``block_weights`` (modules whose weights are kept in blocks), ``cache_room`` (the K/V
rows those layers write into), ``description`` (what all scores come to) and ``streams`` (how fast
memory can be read); ``kernels.c`` names its headers.
"""
