"""The self-check: a loaded model beside the library's own computation, on this machine.

May import all that lies below ``process``. Read ``job`` (the checks, one after another in pieces),
``references`` (what the library computes), ``feeding`` (what this program computes), ``verdicts``
(two results to one ``Check``), ``tolerances``, and ``subject`` (what a check holds for).
``runs.kept_checks`` keeps the result.
"""
