"""The Google Cloud provider: what stays is Pulumi's, what bursts is bulkInsert's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...schemas.spec import ClusterSpec, Pool
from ..provider import Purchase, PurchaseOption
from ..pulumi.provider import CloudProvider, LoginPlugin, ManagedKubernetes
from .plan.layout import login_user
from .plan.pools import machine_of
from .plan.purchase import purchase_options, purchases

if TYPE_CHECKING:
    from .session import Session  # it brings the cloud's SDK


GKE = ManagedKubernetes(
    login=LoginPlugin(
        program="gke-gcloud-auth-plugin",
        install="gcloud components install gke-gcloud-auth-plugin",
    ),
    join_hint="gcloud container node-pools list says how the node pools are",
    # cloud.google.com/kubernetes-engine/docs/how-to/node-auto-repair, November 2026
    repair_hint="GKE recreates what is not ready for ten minutes. Sooner: gcluster drain it, then "
    "gcloud compute instances delete INSTANCE --zone ZONE (the node's name and zone): its node "
    "pool makes another",
)


class GcpProvider(CloudProvider):
    """Provider of sites on Google Cloud."""

    name = "gcp"
    managed_kubernetes = GKE

    def _login_user(self, spec: ClusterSpec, pool: str) -> str:
        return login_user(spec, spec.pools[pool].site)

    def _machine_of(self, pool: Pool) -> str:
        return machine_of(pool)

    def purchase_options(
        self, spec: ClusterSpec, site: str, pool: str
    ) -> tuple[PurchaseOption, ...]:
        """Return the options of a pool, each in all its zones before the next, by the catalog."""
        return purchase_options(spec, site, pool, self._catalog())

    def purchases(self, spec: ClusterSpec, site: str) -> dict[str, Purchase]:
        """Return what the machines and queued requests of the program buy."""
        return purchases(spec, site)

    def _session_type(self) -> type[Session]:
        from .session import Session  # noqa: PLC0415  # it brings Google's API

        return Session
