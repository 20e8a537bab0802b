"""Options of a release for tests: keys without their objects, joined to what Tallyveil takes.

So a test can merge dictionaries of keys, such as `{**OPTIONS, "contributions": 3}`.
"""

import inspect

import tallyveil as tv
from tallyveil.release.methods.registry import METHODS
from tallyveil.release.options import SECTIONS


class FixedEntropy(tv.SeededNotPrivate):
    """A seed that passes for random bits of the operating system, in these tests only."""

    private = True

    def __init__(self):
        super().__init__(11)

    @classmethod
    def fresh(cls, given):
        return cls()


TOP = set(tv.ReleaseOptions.__struct_fields__)
SECTION_OF = {key: name for name, kind in SECTIONS.items() for key in kind.__struct_fields__}
METHOD_KEYS = {key for kind in METHODS.values() for key in kind.__struct_fields__}
GROUPED = ("hierarchy", "margins", "strata")
CHOSEN_BY = {"priority": "preserve", "signed": "geometric"}


def join(**keys):
    """Join keys to the arguments of `tv.privatize`; None leaves a key out."""
    joined, method = {}, {}
    for key, value in keys.items():
        if key in GROUPED and value is not None:
            method |= {"name": key, "columns": value}
        elif key in SECTION_OF and value is not None:
            joined.setdefault(SECTION_OF[key], {})[key] = value
        elif key in METHOD_KEYS and value is not None:
            method[key] = value
        elif key not in {*GROUPED, *SECTION_OF, *METHOD_KEYS}:
            joined[key] = value
    if method:
        named = joined.get("method", "auto")
        chosen = next((name for key, name in CHOSEN_BY.items() if key in method), "auto")
        name = method.pop("name", chosen if named == "auto" else named)
        joined["method"] = {"name": str(name), **method}
    return joined


def privatize(table, *count, entropy=None, **keys):
    """Call `tv.privatize` with keys, or `tv.privatize_levels` if there are `epsilons`."""
    call = tv.privatize_levels if "epsilons" in keys else tv.privatize
    known = inspect.signature(call).parameters
    epsilons = {"epsilons": keys.pop("epsilons")} if "epsilons" in keys else {}
    joined = join(**keys)
    if unknown := joined.keys() - {*known, *TOP}:
        raise TypeError(f"No option has the key {unknown}.")
    if epsilons:
        joined.pop("epsilon", None)
    return call(table, *count, entropy=entropy, **epsilons, **joined)


def make_options(**keys):
    """Build `tv.ReleaseOptions` from keys."""
    return tv.ReleaseOptions(**join(**keys))
