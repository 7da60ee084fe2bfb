"""What crosses a seam between measuring, computing and drawing: frozen records, enums and errors.

Imports nothing of ours and no torch. Records hold ints, floats, strings, enums, datetimes, tuples
and other records (``AttentionMap`` an array): never a tensor, a handle or a frame, so each one can
be sent to another process, written to a file and compared. SI units inside, the unit is the suffix
of the name. ``None`` means "not known here" and is never replaced by a number.

Read ``steps`` (one forward pass), ``run`` (all of it), ``options`` (what can be chosen), ``model``,
``costs``; then the others when something needs them.
"""
