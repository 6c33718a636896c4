"""Network links of nodes, as `top` shows them: those that are lost, that come and go, the busiest.

A large cluster has tens of thousands of links, so Prometheus chooses: a few lines of an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ....inventory.alerts import alert_rules
from .prometheus import Sample

_BUSIEST = 10
_NO_LINK = "(lo|veth|cali|cni|docker|br-|virbr|tap|tun|wg).*"
"""Interfaces without a link, as the alert LinkDown has them."""
_ETHERNET = f'device!~"{_NO_LINK}"'
_LOST: Final = (
    f"increase(node_network_carrier_down_changes_total{{{_ETHERNET}}}[1h]) > 0 "
    "or increase(node_infiniband_link_downed_total[1h]) > 0"
)
_SHUT: Final = (
    f"node_network_up{{{_ETHERNET}}} == 0 and on (instance, device) "
    f"increase(node_network_carrier_down_changes_total{{{_ETHERNET}}}[1h]) > 0"
)
"""One that a person has shut: it has no carrier to be read, so LinkDown knows nothing of it."""
_BUSY: Final = (
    f"rate(node_network_receive_bytes_total{{{_ETHERNET}}}[2m]) "
    f"+ rate(node_network_transmit_bytes_total{{{_ETHERNET}}}[2m]) "
    "or rate(node_infiniband_port_data_received_bytes_total[2m]) "
    "+ rate(node_infiniband_port_data_transmitted_bytes_total[2m])"
)
LINKS: Final = {
    "link_down": " or ".join(
        f"({text})"
        for text in (
            alert_rules()["LinkDown"].expression,
            alert_rules()["InfinibandDown"].expression,
            _SHUT,
        )
    ),
    "link_lost": f"topk({_BUSIEST}, {_LOST})",
    "link_busy": f"topk({_BUSIEST}, {_BUSY})",
}
"""Name -> PromQL. What is down is what the alerts LinkDown and InfinibandDown take for it,
and what was shut in the last hour."""


class LinkUse(msgspec.Struct, frozen=True, kw_only=True):
    """A link of a node: an Ethernet interface, or a port of InfiniBand."""

    node: str
    device: str
    up: bool
    lost: int
    """Times that it went down in the last hour."""
    bytes_per_s: float | None
    """In and out together, over two minutes; None: it is none of the busiest."""


def links_of(found: Mapping[str, list[Sample]]) -> tuple[LinkUse, ...]:
    """Return what is down first, then what was lost most often, then the busiest."""
    by = {name: {_place(s): s.value for s in found[name]} for name in LINKS}
    places = {place for samples in by.values() for place in samples}
    links = (
        LinkUse(
            node=node,
            device=device,
            up=(node, device) not in by["link_down"],
            lost=round(by["link_lost"].get((node, device), 0)),
            bytes_per_s=by["link_busy"].get((node, device)),
        )
        for node, device in places
    )
    return tuple(sorted(links, key=_worst_first))


def _place(sample: Sample) -> tuple[str, str]:
    """Return node and device; a port of InfiniBand has its number after it: "mlx5_0:1"."""
    port = sample.label("port")
    return sample.label("instance"), sample.label("device") + (f":{port}" if port else "")


def _worst_first(link: LinkUse) -> tuple[bool, int, float, str, str]:
    return link.up, -link.lost, -(link.bytes_per_s or 0.0), link.node, link.device
