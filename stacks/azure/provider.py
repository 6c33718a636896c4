"""The Azure provider: Pulumi for fixed resources, scale sets for bursts, the API for queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...schemas.diagnostics import Diagnostic
from ...schemas.spec import ClusterSpec, Pool
from ..provider import Purchase, PurchaseOption
from ..pulumi.provider import CloudProvider, LoginPlugin, ManagedKubernetes
from .plan.facts import facts
from .plan.layout import described, refusals
from .plan.purchase import purchase_options, purchases

if TYPE_CHECKING:
    from .session import Session  # it brings the cloud's SDK


_API_SERVER = "6dae42f8-4368-4678-94ff-3960e28e3630"
"""Entra's id of AKS' API servers, the same in every tenant (azure.github.io/kubelogin, "Using
kubelogin with AKS", November 2026)."""
AKS = ManagedKubernetes(
    login=LoginPlugin(
        program="kubelogin",
        install="az aks install-cli, which brings both",
        needs=("az",),
        arguments=lambda _: ("get-token", "--login", "azurecli", "--server-id", _API_SERVER),
    ),
    join_hint="az aks nodepool list says how the node pools are",
    # learn.microsoft.com/azure/aks/node-auto-repair, November 2026
    repair_hint="AKS restarts and reimages what is not ready by itself. Sooner: gcluster drain it, "
    "then az aks nodepool delete-machines --resource-group GROUP --cluster-name CLUSTER --name "
    "POOL --machine-names MACHINE, and gcluster up: the pool gets its size again",
)


class AzureProvider(CloudProvider):
    """Provider of sites on Azure."""

    name = "azure"
    managed_kubernetes = AKS

    def _login_user(self, spec: ClusterSpec, pool: str) -> str:
        return described(spec, spec.pools[pool].site).ssh.user or facts().user

    def _machine_of(self, pool: Pool) -> str:
        return pool.machine or facts().machine

    def purchase_options(
        self, spec: ClusterSpec, site: str, pool: str
    ) -> tuple[PurchaseOption, ...]:
        """Return the options of a pool, each in all its zones before the next, by the catalog."""
        return purchase_options(spec, site, pool, self._catalog())

    def purchases(self, spec: ClusterSpec, site: str) -> dict[str, Purchase]:
        """Return what the scale sets and machines of the program buy."""
        return purchases(spec, site, self._catalog())

    def refusals(self, spec: ClusterSpec, site: str) -> tuple[Diagnostic, ...]:
        """Return what Azure does not make, or what is not named whole (GC990)."""
        return refusals(spec, site, self._catalog())

    def _session_type(self) -> type[Session]:
        from .session import Session  # noqa: PLC0415  # it brings Azure's SDK

        return Session
