"""Networks of pods and services: of the nodes' kind, and with room for them."""

from __future__ import annotations

from collections.abc import Iterator

from ..diagnostics import PathTuple
from .cidrs import parsed
from .context import CheckContext
from .registry import Finding, check

_PODS: PathTuple = ("scheduler", "pod_cidr")
_SERVICES: PathTuple = ("scheduler", "service_cidr")
_PLANE: PathTuple = ("scheduler", "control_plane")
_NODE_PREFIX = 24
"""Each node gets a network of this size for its pods: kube-controller-manager's default
(node-cidr-mask-size-ipv4, kubernetes.io, read 2026-11)."""
_LARGEST_SERVICES, _SMALLEST_SERVICES = 12, 28
"""Prefixes: the API server takes 20 bits at most, and the tenth address is the DNS server's
(kubeadm, MaximumBitsForServiceSubnet and MinimumAddressesInServiceSubnet; read 2026-11)."""


@check("GC320", summary="Pods or services do not fit into their network.")
def no_room_for_pods(context: CheckContext) -> Iterator[Finding]:
    """Each node takes a /24 of `pod_cidr` for its pods, so a /16 is for 256 nodes.

    Networks of pods and services are IPv4, as the nodes' addresses are; that of the services is a
    /12 to a /28. A cloud's own control plane has rules of its own for their sizes.
    """
    kubernetes = context.kubernetes
    if kubernetes is None:
        return
    for who, text, path in (
        ("pods", kubernetes.pod_cidr, _PODS),
        ("services", kubernetes.service_cidr, _SERVICES),
    ):
        network = parsed(text)
        if isinstance(network, str):
            continue
        if network.version != 4:  # noqa: PLR2004  # IPv4
            yield Finding(
                summary=f"the {who}' network is IPv6, and nodes have IPv4 addresses",
                path=path,
                hint="write an IPv4 network such as "
                + ("10.244.0.0/16" if who == "pods" else "10.96.0.0/12"),
            )
        elif kubernetes.control_plane == "self" and who == "pods":
            yield from _pods(context, network.prefixlen)
        elif kubernetes.control_plane == "self":
            yield from _services(network.prefixlen)


def _pods(context: CheckContext, prefix: int) -> Iterator[Finding]:
    """Yield that some nodes would get no network for their pods."""
    sizes = [context.size(name) for name in context.pools]
    nodes = max(1, sum(size or 0 for size in sizes))
    have = 2 ** (_NODE_PREFIX - prefix) if prefix <= _NODE_PREFIX else 0
    if nodes > have:
        needed = _NODE_PREFIX - (nodes - 1).bit_length()
        yield Finding(
            summary=f"a /{prefix} has networks for the pods of {have:,} nodes, and there are "
            f"{nodes:,}",
            path=_PODS,
            hint=f"a /{needed} is large enough",
            relies_on=(_PODS, _PLANE, ("pools", "*", "count"), ("pools", "*", "hosts")),
        )


def _services(prefix: int) -> Iterator[Finding]:
    if not _LARGEST_SERVICES <= prefix <= _SMALLEST_SERVICES:
        size = "large" if prefix < _LARGEST_SERVICES else "small"
        yield Finding(
            summary=f"a /{prefix} is too {size} for the services",
            path=_SERVICES,
            hint=f"take one from /{_LARGEST_SERVICES} to /{_SMALLEST_SERVICES}, such as "
            "10.96.0.0/12",
            relies_on=(_SERVICES, _PLANE),
        )
