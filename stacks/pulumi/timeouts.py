"""How long the engine waits for slow resources: longer than their providers by themselves.

A provider that gives up leaves a resource that the cloud goes on making, that is paid for, and that
the next update makes once more. Which kinds are slow is data beside each cloud (`timeouts.yaml`),
each with its reason.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
import pulumi
from pulumi.runtime import register_stack_transformation

from ...schemas.decoding import decode_yaml


class SlowKind(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A kind of resource whose provider gives up too early; times as Pulumi writes them: "2h"."""

    create: str | None = None
    """None: the provider's own time, as for the others."""
    update: str | None = None
    delete: str | None = None
    reason: str
    """What takes so long, the provider's own time, and who says so."""


@cache
def slow_kinds(cloud: str) -> dict[str, SlowKind]:
    """Return type token ("aws:eks/cluster:Cluster") -> times, of the kinds that are slow."""
    text = (Path(__file__).parents[1] / cloud / "timeouts.yaml").read_bytes()
    return decode_yaml(text, dict[str, SlowKind])


def wait_for_slow_kinds(cloud: str) -> None:
    """Give the running program's slow resources their time, from here on; call it first.

    Times that a resource says itself stay.
    """
    known = slow_kinds(cloud)

    def wait(
        args: pulumi.ResourceTransformationArgs,
    ) -> pulumi.ResourceTransformationResult | None:
        slow = known.get(args.type_)
        if slow is None or args.opts.custom_timeouts is not None:
            return None
        times = pulumi.CustomTimeouts(create=slow.create, update=slow.update, delete=slow.delete)
        opts = pulumi.ResourceOptions.merge(
            args.opts, pulumi.ResourceOptions(custom_timeouts=times)
        )
        return pulumi.ResourceTransformationResult(props=args.props, opts=opts)

    register_stack_transformation(wait)
