"""A cluster without a scheduler."""

from ..model import SpecModel
from .work import Account, Partition, Qos


class NoScheduler(SpecModel, frozen=True, tag_field="type", tag="none"):
    """No scheduler: people start Ray, torchrun or mpirun on the nodes themselves, over SSH."""

    @property
    def partitions(self) -> dict[str, Partition]:
        """Partitions: none, so that a test covers all compute pools at once."""
        return {}

    @property
    def qos(self) -> dict[str, Qos]:
        """Qualities of service: none."""
        return {}

    @property
    def accounts(self) -> dict[str, Account]:
        """Accounts: none."""
        return {}
