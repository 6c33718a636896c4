"""The OCI provider: Pulumi for fixed resources, launches for bursts, the API for queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...schemas.spec import ClusterSpec
from ..provider import Purchase, PurchaseOption
from ..pulumi.provider import CloudProvider
from .plan.pools import pool_plan
from .plan.purchase import purchase_options, purchases

if TYPE_CHECKING:
    from .session import Session  # it brings the cloud's SDK


class OciProvider(CloudProvider):
    """Provider of sites on OCI."""

    name = "oci"

    def _login_user(self, spec: ClusterSpec, pool: str) -> str:
        return pool_plan(spec, pool, self._catalog()).image.user

    def purchase_options(
        self, spec: ClusterSpec, site: str, pool: str
    ) -> tuple[PurchaseOption, ...]:
        """Return the options of a pool, each in all its domains before the next, by the catalog."""
        return purchase_options(spec, site, pool, self._catalog())

    def purchases(self, spec: ClusterSpec, site: str) -> dict[str, Purchase]:
        """Return what the instances, cluster networks and memory clusters of the program buy."""
        return purchases(spec, site, self._catalog())

    def _session_type(self) -> type[Session]:
        from .session import Session  # noqa: PLC0415  # it brings OCI's API

        return Session
