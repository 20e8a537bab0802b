"""What the worker processes of the studio can be asked to do, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tallyveil.studio import work_check, work_design, work_publish


def _warm_up() -> None:
    """Load what the first answer would otherwise wait for."""
    from tallyveil.certified.certify import certify_geometric
    from tallyveil.optimize.design import design
    from tallyveil.query import Query

    certify_geometric(Query.count(3), 1)
    design(Query.count(3), 1, properties="fair")


TASKS: Mapping[str, Callable[..., Any]] = {
    "warm_up": _warm_up,
    "look_at_table": work_publish.look_at_table,
    "show_values": work_publish.show_values,
    "write_demo": work_publish.write_demo,
    "preview": work_publish.preview,
    "find_epsilon": work_publish.find_epsilon,
    "compare_methods": work_publish.compare_methods,
    "simulate": work_publish.simulate,
    "publish": work_publish.publish,
    "check": work_check.check,
    "read_release": work_check.read_release,
    "read_count": work_check.read_count,
    "read_totals": work_check.read_totals,
    "solve": work_design.solve,
    "find_prices": work_design.find_prices,
    "certify_design": work_design.certify_design,
    "learn": work_design.learn,
}
