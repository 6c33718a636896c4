"""What expressions see: the spec as plain data, defaults filled in, with catalog and costs joined.

Sizes are bytes, times seconds, money USD per hour, all as doubles. What is not known is null.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import msgspec

from ..catalog import Catalog, Machine
from ..cost.pools import Cost, PoolCost, usd_per_hour
from ..diagnostics import PathTuple
from ..spec import ClusterSpec, Pool
from ..spec.units import Quantity
from .shape import (
    ANY,
    SCALAR,
    TEXT,
    Shape,
    filled,
    list_of,
    record,
    shape_of,
    with_fields,
)

PLACES: Mapping[str, tuple[str, ...]] = {
    "site": ("sites",),
    "pool": ("pools",),
    "storage": ("storage",),
    "partition": ("scheduler", "partitions"),
    "qos": ("scheduler", "qos"),
    "account": ("scheduler", "accounts"),
    "user": ("users",),
}
"""Where the items of each kind are in the spec; the last key also names the list of them."""


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a policy is evaluated for."""

    label: str
    """How messages call it: pool "train"."""
    path: PathTuple
    variables: dict[str, Any]
    """What expressions see, by variable."""


def plain(value: Any) -> Any:
    """Return a typed value as plain data, with its defaults and in base units."""
    if isinstance(value, Quantity):
        return float(value.value)
    if isinstance(value, msgspec.Struct):
        config = value.__struct_config__
        tag = {config.tag_field: config.tag} if config.tag_field else {}
        names = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
        return {**tag, **{written: plain(getattr(value, name)) for name, written in names}}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def shapes(kind: str) -> dict[str, Shape]:
    """Return the variables that a policy for this kind sees, with their shapes."""
    root = shape_of(ClusterSpec)
    lists = {names[-1] for names in PLACES.values() if len(names) == 1}
    cluster = Shape(fields={n: s for n, s in (root.fields or {}).items() if n not in lists})
    always = {"cluster": with_fields(cluster, users=_at(root, ("users",))), "cost": _COST}
    if kind == "cluster":
        return {**always, **{place[-1]: list_of(_item_shape(k)) for k, place in PLACES.items()}}
    return {**always, kind: _item_shape(kind)}


def written_shape(kind: str) -> Shape:
    """Return the keys that an item of this kind has in a file."""
    root = shape_of(ClusterSpec)
    return root if kind == "cluster" else _at(root, PLACES[kind]).items or ANY


class Facts:
    """The facts of one spec."""

    def __init__(self, spec: ClusterSpec, catalog: Catalog) -> None:
        """Hold the parts; each kind of item is made when it is needed."""
        self._spec = spec
        self._catalog = catalog
        self._machines: dict[str, Any] = {}
        self._items: dict[str, list[tuple[PathTuple, dict[str, Any]]]] = {}

    def items(self, kind: str) -> Iterator[Item]:
        """Yield every item of a kind, in file order."""
        always = {"cluster": self._cluster, "cost": self._cost_facts}
        if kind == "cluster":
            lists = {place[-1]: [f for _, f in self._all(k)] for k, place in PLACES.items()}
            label = f'cluster "{self._spec.name}"'
            yield Item(label=label, path=("name",), variables={**always, **lists})
            return
        for path, facts in self._all(kind):
            label = f'{kind} "{facts["name"]}"'
            yield Item(label=label, path=path, variables={**always, kind: facts})

    @cached_property
    def _cost(self) -> Cost:
        return usd_per_hour(self._spec, self._catalog)

    @cached_property
    def _cost_facts(self) -> Any:
        return filled(plain(self._cost), _COST)

    @cached_property
    def _cluster(self) -> Any:
        shape = shapes("cluster")["cluster"]
        users = self._spec.users
        facts = {
            written: plain(getattr(self._spec, name))
            for name, written in zip(
                self._spec.__struct_fields__, self._spec.__struct_encode_fields__, strict=True
            )
            if written in (shape.fields or {}) and written != "users"
        }
        return filled({**facts, "users": None if isinstance(users, list) else plain(users)}, shape)

    @cached_property
    def _sites(self) -> dict[str, Any]:
        return {facts["name"]: facts for _, facts in self._all("site")}

    def _all(self, kind: str) -> list[tuple[PathTuple, dict[str, Any]]]:
        if kind not in self._items:
            shape = _item_shape(kind)
            self._items[kind] = [
                (path, filled(self._joined(kind, value, {"name": path[-1], **plain(value)}), shape))
                for path, value in self._typed(PLACES[kind])
            ]
        return self._items[kind]

    def _typed(self, place: tuple[str, ...]) -> Iterator[tuple[PathTuple, Any]]:
        node: Any = self._spec
        for step in place:
            node = getattr(node, step, None)
        if isinstance(node, Mapping):
            for name, value in node.items():
                yield (*place, str(name)), value
        elif isinstance(node, list):
            for index, value in enumerate(node):
                yield (*place, index), value

    def _joined(self, kind: str, value: Any, facts: dict[str, Any]) -> dict[str, Any]:
        if kind == "site":
            return {**facts, "is_cloud": value.is_cloud}
        if isinstance(facts.get("site"), str):
            facts = {**facts, "site": self._sites.get(facts["site"])}
        return {**facts, **self._pool(facts["name"], value)} if kind == "pool" else facts

    def _pool(self, name: str, pool: Pool) -> dict[str, Any]:
        cost = self._cost.pools[name]
        machine = self._catalog.machines.get(pool.machine) if pool.machine is not None else None
        if machine is not None and machine.name not in self._machines:
            self._machines[machine.name] = filled(plain(machine), _MACHINE)
        per_node = machine.gpu.count if machine is not None and machine.gpu is not None else None
        words = [option if isinstance(option, str) else option.market for option in pool.market]
        default = ["on-demand"] if self._spec.sites[pool.site].is_cloud else []
        return {
            "machine": None if machine is None else self._machines[machine.name],
            "count": {"min": cost.least, "max": cost.count},
            "gpus": None if per_node is None else per_node * cost.count,
            "market": words or default,
            "cost": plain(cost),
        }


_COST = shape_of(Cost)
_MACHINE = shape_of(Machine)

JOINED: Mapping[str, Mapping[str, Shape]] = {
    "site": {"is_cloud": SCALAR},
    "pool": {
        "machine": _MACHINE,
        "count": record(min=SCALAR, max=SCALAR),
        "gpus": SCALAR,
        "market": list_of(SCALAR),
        "cost": shape_of(PoolCost),
    },
}
"""Fields of an item that the spec has not, or has in another form."""


def _item_shape(kind: str) -> Shape:
    shape = with_fields(written_shape(kind), name=TEXT, **JOINED.get(kind, {}))
    if kind != "site" and "site" in (shape.fields or {}):
        shape = with_fields(shape, site=_item_shape("site"))
    return shape


def _at(shape: Shape, place: tuple[str, ...]) -> Shape:
    for step in place:
        shape = shape.field(step) or ANY
    return shape
