"""One site while it is worked on: its plan, its region, its keys, its stack."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property

import msgspec

from ...schemas.derived.eks_groups import ENABLED
from ...schemas.diagnostics import Diagnostic
from ..provider import BlockOffering, Leftover, Offer, ProviderError
from ..pulumi.engine.checkpoint import Begun, is_machine, resources
from ..pulumi.hosts import Machine
from ..pulumi.names import OFFER
from ..pulumi.plan import ManagedStorage, data_names
from ..pulumi.preflight import finding
from ..pulumi.session import ListingSession
from .api import Answer, Api, tagged
from .elastic import grow, shrink, terminate
from .file_systems import existing_device
from .hosts import Instance, console, instances, places, seen
from .leftovers import leftovers
from .offers import offers
from .plan.layout import site_plan
from .plan.purchase import bought_blocks
from .plan.types import MadeNode, SitePlan
from .preflight.blocks import block_offering
from .preflight.questions import preflight


class _Group(Answer, frozen=True):
    name: str = msgspec.field(name="AutoScalingGroupName")


class _Groups(Answer, frozen=True):
    groups: tuple[_Group, ...] = msgspec.field(name="AutoScalingGroups")


_GROUP = "aws:autoscaling/group:Group"


class Session(ListingSession[Instance]):
    """A site on AWS while it is worked on."""

    cloud = "aws"
    title = "AWS"
    _renewed: frozenset[str] = frozenset()
    """Resources of machines that are to be made again."""

    @cached_property
    def plan(self) -> SitePlan:
        """The site's plan."""
        return site_plan(self._context.spec, self._context.site, self._catalog)

    @cached_property
    def api(self) -> Api:
        """AWS in the site's region."""
        return self._given or Api(self.plan.region)

    def preflight(self) -> tuple[Diagnostic, ...]:
        """Check with AWS what blocks `up`."""
        return preflight(self.api, self._context.spec, self.plan, self._catalog)

    def offers(self, pool: str) -> tuple[Offer, ...]:
        """Return each option's current price, and what a reservation has left."""
        return offers(self.api, self.plan.pool(pool), self._catalog)

    def before_up(self) -> None:
        """Refuse to buy a block that no plan showed: its pool is without capacity.

        Raises:
            ProviderError: GC975, a block was not on offer.
        """
        context, plan = self._context, self.plan
        blocks = bought_blocks(self.api, plan, context.purchased) if context.buys else {}
        lacking = {
            plan.names(f"block-{pool.name}"): finding(
                "GC975",
                f'pool "{pool.name}": no capacity block ({offer.key}) was on offer when it was '
                "planned, so none is bought",
            )
            for pool in plan.pools
            if pool.name in context.buys and pool.name not in blocks
            for offer in pool.purchased(context.purchased).values()
            if offer.option.buy_hours is not None
            and f"{pool.name}/{offer.key}" not in context.offerings
        }
        if lacking:
            raise ProviderError(*lacking.values(), lacking=lacking)

    def block_offering(self, pool: str, option: str) -> BlockOffering | None:
        """Return the earliest block on offer in the option's zone, unless the pool has one."""
        plan = self.plan.pool(pool)
        offer = next((each for each in plan.offers if each.key == option), None)
        if offer is None or offer.option.buy_hours is None:
            return None
        if pool in bought_blocks(self.api, self.plan, dict.fromkeys(plan.nodes, option)):
            return None
        return block_offering(self.api, plan, offer)

    def leftovers(self) -> tuple[Leftover, ...]:
        """List all resources with the site's tags."""
        return leftovers(self.api, self.plan, self._catalog)

    def machines(self) -> tuple[Instance, ...]:
        """Return the machines that exist."""
        return instances(self.api, self.plan)

    def grow(self, pool: str, wanted: list[str], token: str) -> dict[str, str]:
        """Launch what is missing through EC2 Fleet."""
        started = grow(self.api, self.plan, self.plan.pool(pool), wanted, token)
        return {machine.host: machine.id for machine in started}

    def shrink(self, names: set[str]) -> dict[str, str]:
        """End elastic machines."""
        return shrink(self.api, self.plan, names)

    def _program(self) -> Callable[[], None]:
        from .program.site import program  # noqa: PLC0415  # 0.7 s, for the engine only

        context = self._context
        return program(
            context.spec,
            context.site,
            self._catalog,
            authorized_key=self.authorized_key(),
            purchased=context.purchased,
            blocks=bought_blocks(self.api, self.plan, context.purchased),
            buys=context.buys,
            offerings=context.offerings,
            made=self._made(),
        )

    def recreate(self, total: int, names: Iterable[str]) -> None:
        """Read back what is there, then make these machines from scratch, as they are wanted now.

        Raises:
            ProviderError: as `engine.up`.
        """
        self._renewed = frozenset(names)
        super().recreate(total, self._renewed)

    def _made(self) -> dict[str, MadeNode]:
        if not self.has_stack:
            return {}
        return {
            one.name: MadeNode(
                offer=(one.inputs.get("tags") or {}).get(OFFER, ""),
                machine=one.inputs.get("instanceType", ""),
                ami=one.inputs.get("ami"),
                renewed=one.name in self._renewed,
            )
            for one in resources(self._bare_engine().export())
            if is_machine(one)
        }

    def _data_names(self) -> Mapping[str, Iterable[str]]:
        plan = self.plan
        lustre, buckets = (f.name for f in plan.lustre), (b.name for b in plan.buckets)
        services = [*(system.name for system in plan.efs), *(s.name for s in plan.openzfs)]
        return data_names(plan, lustre=lustre, buckets=buckets, services=services)

    def _existing_device(self, storage: ManagedStorage) -> str:
        return existing_device(self.api, storage)

    def _is_node(self, machine: Instance) -> bool:
        pool = self.plan.pools_by_name.get(machine.pool)
        return pool is None or not pool.joins_eks

    def _settle(self, begun: Begun, known: Collection[str]) -> dict[str, str]:
        """Also end a group that a killed run created: the autoscaler would size both."""
        if any(one.type == _GROUP for one in begun):
            wanted = tagged({**self.plan.labels.found_by(), ENABLED: "true"})
            pages = self.api.pages(
                _Groups, "autoscaling", "describe_auto_scaling_groups", Filters=wanted
            )
            for name in [g.name for page in pages for g in page.groups if g.name not in known]:
                self.api.call(
                    Answer,
                    "autoscaling",
                    "delete_auto_scaling_group",
                    AutoScalingGroupName=name,
                    ForceDelete=True,
                )
        return super()._settle(begun, known)

    def _console(self, machine: Instance) -> str:
        return console(self.api, machine.id)

    def _seen(self, machines: Sequence[Instance], wanted: Sequence[Instance]) -> Iterable[Machine]:
        there, tunnel = places(self.api, wanted), self._site.tunnel
        return [seen(self.plan, one, there.get(one.id), tunnel=tunnel) for one in machines]

    def _end(self, machines: Sequence[Instance]) -> None:
        terminate(self.api, [machine.id for machine in machines])
