"""Bridges to other libraries, each imported by name because each needs its own extra.

* ``isotone.interop.opendp``: every mechanism as an OpenDP measurement (the extra ``opendp``).
* ``isotone.interop.accounting``: every guarantee for Google's dp_accounting (the extra ``accounting``).

scikit-learn needs no bridge: the estimators of ``isotone.curves`` are its estimators wherever it is installed, in pipelines
and searches too. Only ``fit`` is private. Scores (``score``, cross-validation) are computed without noise, and a model
chosen by them (grid search) reveals what they reveal; every fit of a search spends its own epsilon.
"""
