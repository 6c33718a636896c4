"""The cloud sites of all examples, cases and blueprints, each with the program that `up` runs."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import msgspec
import yaml

from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load, load_text
from gcluster.schemas.spec import ClusterSpec
from gcluster.stacks.provider import ProviderError
from gcluster.stacks.pulumi.provider import CloudProvider
from gcluster.stacks.pulumi.recording.graph import RecordedGraph
from gcluster.stacks.registry import clouds, provider

_TESTS = Path(__file__).parents[1]
FILES = (
    *sorted((_TESTS.parent / "examples").glob("*.yaml")),
    *sorted((_TESTS / "cases/stacks").glob("*/specs/*.yaml")),
    *sorted((_TESTS / "cases/stacks").glob("*/kubernetes/*.yaml")),
    *sorted((_TESTS / "cases/blueprints").glob("*.yaml")),
)


class CloudSite(msgspec.Struct, frozen=True):
    """One site of one spec."""

    id: str
    spec: ClusterSpec
    name: str
    cloud: str

    def program(self) -> Callable[[], None]:
        """Return the program, as the cloud's session gives it to the engine."""
        module = importlib.import_module(f"gcluster.stacks.{self.cloud}.program.site")
        program: Callable[[], None] = module.program(self.spec, self.name, load_catalog())
        return program

    def recorded(self) -> RecordedGraph:
        """Return the program as recorded offline, once a process."""
        _, graph = _GRAPHS.get(id(self), (self, None))
        if graph is None:
            made = provider(self.cloud)
            assert isinstance(made, CloudProvider)
            graph = made.record(self.spec, self.name)
            _GRAPHS[id(self)] = self, graph
        return graph


_GRAPHS: dict[int, tuple[CloudSite, RecordedGraph]] = {}
"""What was recorded, by the identity of its site, which is kept so that no other gets it."""


@cache
def cloud_sites() -> tuple[CloudSite, ...]:
    """Return all sites on clouds that the files have."""
    return tuple(_sites())


def _sites() -> Iterator[CloudSite]:
    for file in FILES:
        loaded = load(file)
        kind = "example" if file.parent.name == "examples" else None
        if file.parent.name == "blueprints":
            case = yaml.safe_load(file.read_text(encoding="utf-8"))
            loaded, kind = load_text(case["spec"], file=file.name), "blueprint"
        spec = loaded.spec
        if spec is None:
            raise ProviderError(*loaded.diagnostics)
        for name, site in spec.sites.items():
            if site.provider in clouds():
                yield CloudSite(
                    f"{kind or site.provider}-{file.stem}-{name}", spec, name, site.provider
                )
