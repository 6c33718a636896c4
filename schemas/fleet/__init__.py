"""Many specs at once: the specs of a folder, and what clashes between their clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..diagnostics import Diagnostic, in_file_order
from .claims import hosts_claimed_twice, names_given_twice, same_clusters, states_given_twice
from .codes import FLEET_CODES
from .member import Member
from .ordering import overlapping_networks

if TYPE_CHECKING:
    from ..load import Loaded

__all__ = ["FLEET_CODES", "check_fleet"]


def check_fleet(loaded: Sequence[Loaded]) -> list[Diagnostic]:
    """Return what clashes between the clusters of several specs, in file order.

    Each finding stands in the later file (in the order given) and names the earlier one. About
    as much work as there are hosts and networks.
    """
    members = [Member(each) for each in loaded]
    again = same_clusters(members)
    clusters = [member for index, member in enumerate(members) if index not in again]
    found = [
        *names_given_twice(members),
        *states_given_twice(clusters),
        *hosts_claimed_twice(clusters),
        *overlapping_networks(clusters),
    ]
    return in_file_order(found)
