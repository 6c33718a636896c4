"""One elastic node at one poll: its state for the agent, and what is to be recorded of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .....schemas.structure.decoding import decode_json
from ....kubernetes.observe import LiveNode, PodSeen, node_seen
from ....kubernetes.observe import NodeSeen as KubernetesNode
from ..agent.scheduler import NodeSeen
from .reading import Power, seconds

SILENT_S = 300.0
"""Seconds without its kubelet's report after which a node is given up: as long as pods tolerate it
(Kubernetes, DefaultTolerationSeconds)."""
SETTLES_S = 5.0
"""Seconds that a node is cordoned before its machine goes: a pod that was being placed is seen."""


class ElasticNode:
    """One elastic node at one poll."""

    def __init__(
        self,
        name: str,
        row: Mapping[str, str] | None,
        pods: Sequence[PodSeen],
        power: Power | None,
        now: float,
    ) -> None:
        """Read it.

        Args:
            name: the node.
            row: `ELASTIC_NODE_FIELDS` of its object; None: there is none.
            pods: that hold it.
            power: what is recorded.
            now: seconds since 1970.
        """
        self.name, self.power = name, power
        self.resumes = False
        self.is_gone = False
        """Its machine was given back, and its object is left."""
        self.notes: str | None = None
        """Since when it is idle, "" where it is no more; None: as is written."""
        self.live: LiveNode | None = None
        self._pods, self._now, self._row = pods, now, row
        self._node: KubernetesNode | None = None
        if row is not None:
            self._node = node_seen(row)
            self.live = LiveNode(
                labels=decode_json(row["labels"] or "{}", dict[str, str]),
                taints=tuple(decode_json(row["taints"] or "[]", list[dict[str, Any]])),
                ready=self._node.ready,
            )

    @property
    def is_off(self) -> bool:
        """Whether it may be requested."""
        return self.power is None and self._node is None

    def seen(self) -> NodeSeen:
        """Return its state for the agent, and set what is to be recorded."""
        power = self.power
        if power is not None and power.state == "down":
            return NodeSeen(state="down", reason=power.reason)
        if self._node is None:
            return self._absent(power)
        if power is not None and power.state == "released":
            since = seconds(self._node.not_ready_since)
            self.is_gone = not self._node.ready and self._now - since > SILENT_S
            return NodeSeen(state="off")
        return self._present(power, self._node)

    def _absent(self, power: Power | None) -> NodeSeen:
        if power is not None and power.state == "requested":
            return NodeSeen(state="coming")
        self.power = None
        return NodeSeen(state="off")

    def _present(self, power: Power | None, node: KubernetesNode) -> NodeSeen:
        is_new = power is not None and power.state == "requested"
        if is_new and (not node.ready or node.awaits):
            return NodeSeen(state="coming")
        if not node.ready:
            if self._now - seconds(node.not_ready_since) > SILENT_S:
                return NodeSeen(state="down", reason=f"Not responding: {node.not_ready}")
            return NodeSeen(state="here", fit=False)
        if power is not None and power.state == "draining":
            return self._draining(power)
        if power is None or is_new:
            self.power = Power(state="joined", at=self._now)
        return self._here(node)

    def _draining(self, power: Power) -> NodeSeen:
        if self._pods:
            self.resumes = True
            self.power = Power(state="joined", at=self._now)
        elif self._now - power.at >= SETTLES_S:
            self.power = Power(state="released", at=self._now)
            return NodeSeen(state="off")
        return NodeSeen(state="here", fit=False)

    def _here(self, node: KubernetesNode) -> NodeSeen:
        assert self._row is not None  # noqa: S101  # a node has one
        written = self._row["idle"]
        if self._pods or node.cordoned:
            self.notes = "" if written else None
            return NodeSeen(state="here", fit=not node.cordoned)
        if not written:
            self.notes = f"{self._now:.0f}"
        since = float(written) if written else self._now
        return NodeSeen(state="here", idle_since=since, fit=not node.awaits)
