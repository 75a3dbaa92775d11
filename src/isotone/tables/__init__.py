"""Tables of counts that keep their distribution.

Privatisers, count mechanisms and plans.
"""

from isotone.lazy import public_names

__all__, __getattr__ = public_names(__name__)
