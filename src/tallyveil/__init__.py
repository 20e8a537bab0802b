"""Release tables of counts with differential privacy, proved in integers and drawn exactly.

``import tallyveil as tv`` loads nothing but this page; each public name is fetched from its
home module on first use, so heavy libraries are imported only by those who need them. The
list of names, by topic, is the type stub next to this file.
"""

from tallyveil._lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
