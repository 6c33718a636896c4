"""The cloud sites of all examples and cases, each with the inline program that `up` runs."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import msgspec

from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load
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
        """Return the program as recorded offline."""
        made = provider(self.cloud)
        assert isinstance(made, CloudProvider)
        return made.record(self.spec, self.name)


@cache
def cloud_sites() -> tuple[CloudSite, ...]:
    """Return all sites on clouds that the files have."""
    return tuple(_sites())


def _sites() -> Iterator[CloudSite]:
    for file in FILES:
        spec = load(file).spec
        if spec is None:
            raise ProviderError(*load(file).diagnostics)
        for name, site in spec.sites.items():
            if site.provider in clouds():
                kind = "example" if file.parent.name == "examples" else site.provider
                yield CloudSite(f"{kind}-{file.stem}-{name}", spec, name, site.provider)
