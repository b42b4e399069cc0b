"""Outside the catalogue nothing asks which method an order is of, nor an event for its kind: they say themselves what is needed."""

from __future__ import annotations

import ast
from pathlib import Path

import service.methods
from service.methods.catalogue import ORDERS
from service.methods.knobs import AnyOrder, Knobs, Order

ROOT = Path(service.methods.__path__[0]).parents[1]
MAY = {"service/methods/catalogue.py", "service/queries/earlier.py", "service/queries/service.py"}
"""Questions have doors of their own, which take no other orders."""


def orders() -> set[str]:
    known = {AnyOrder, Order, *ORDERS.values()}
    return {cls.__name__ for order in known for cls in order.__mro__ if issubclass(cls, Knobs)}


def dispatches(path: Path) -> list[str]:
    """Names of orders and events that `isinstance` is asked about."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance"]
    names = {name.id for call in calls for name in ast.walk(call.args[1]) if isinstance(name, ast.Name)}
    return sorted(names & orders() | {name for name in names if name.endswith("Event")})


def test_no_module_outside_the_catalogue_tells_orders_or_events_apart() -> None:
    found = {
        str(path.relative_to(ROOT)): dispatches(path)
        for side in ("service", "workers")
        for path in (ROOT / side).rglob("*.py")
        if str(path.relative_to(ROOT)) not in MAY and not path.match("service/privacy/event*.py")
    }
    assert {path: names for path, names in found.items() if names} == {}


def test_the_look_for_it_finds_one(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text("isinstance(order, MarginalsOrder | int) or isinstance(event, GaussianEvent)\n", encoding="utf-8")
    assert dispatches(module) == ["GaussianEvent", "MarginalsOrder"]
    module.write_text("isinstance(order, PublicStartOrder)  # a part that several orders have\n", encoding="utf-8")
    assert dispatches(module) == ["PublicStartOrder"]
