"""The AWS provider: Pulumi for fixed resources, EC2 Fleet for bursts, the API for queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ...schemas.diagnostics import Diagnostic
from ...schemas.spec import ClusterSpec
from ..provider import BlockOffering, Purchase, PurchaseOption, SiteContext
from ..pulumi.plan import site_names
from ..pulumi.provider import CloudProvider, LoginPlugin, ManagedKubernetes
from .plan.eks_groups import group_name, refusals
from .plan.pools import pool_plan
from .plan.purchase import purchase_options, purchases

if TYPE_CHECKING:
    from .session import Session  # it brings the cloud's SDK


EKS = ManagedKubernetes(
    login=LoginPlugin(
        program="aws",
        install="install the AWS CLI, version 2",
        arguments=lambda plane: (
            *(("--region", plane.region) if plane.region else ()),
            *("eks", "get-token", "--cluster-name", plane.name, "--output", "json"),
        ),
    ),
    elastic_group=lambda spec, site, pool: group_name(site_names(spec, site), pool),
    join_hint="an instance that doesn't join says why on its console: aws ec2 get-console-output",
)


class AwsProvider(CloudProvider):
    """Provider of sites on AWS."""

    name = "aws"
    managed_kubernetes = EKS
    sells_blocks = True

    def _login_user(self, spec: ClusterSpec, pool: str) -> str:
        return pool_plan(spec, pool, self._catalog()).image.user

    def purchase_options(
        self, spec: ClusterSpec, site: str, pool: str
    ) -> tuple[PurchaseOption, ...]:
        """Return the options of a pool, each in all its zones before the next, by the catalog."""
        return purchase_options(spec, site, pool, self._catalog())

    def block_offering(self, context: SiteContext, pool: str, option: str) -> BlockOffering | None:
        """Return the earliest block on offer in the option's zone, unless the pool has one."""
        session = cast("Session", self._session(context))
        return session.block_offering(pool, option)

    def purchases(self, spec: ClusterSpec, site: str) -> dict[str, Purchase]:
        """Return what the instances and capacity blocks of the program buy."""
        return purchases(spec, site)

    def refusals(self, spec: ClusterSpec, site: str) -> tuple[Diagnostic, ...]:
        """Return the groups of elastic nodes under EKS that AWS wouldn't take (GC745)."""
        return tuple(refusals(spec, site, self._catalog()))

    def _session_type(self) -> type[Session]:
        from .session import Session  # noqa: PLC0415  # it brings AWS' API

        return Session
