"""What the storage benchmark has measured, as it is kept in the cluster's state."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

from ....inventory.workloads.checkpoints import WriteSpeed
from ....schemas.spec import ClusterSpec, Storage
from ....schemas.structure.decoding import decode_json
from ...state import StateStore

KEY = "storage.json"
FORMAT = "gcluster/storage/v1"


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """What one or several nodes reached together; None: not measured."""

    write_bytes_per_s: float | None = None
    read_bytes_per_s: float | None = None
    creates_per_s: float | None = None
    stats_per_s: float | None = None
    unlinks_per_s: float | None = None


class StorageFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One storage, as some of its nodes saw it."""

    mount: str
    time: str
    """When it was measured, in UTC."""
    kind: str = ""
    """Type of the file system on the nodes."""
    nodes: str = ""
    """That took part, as a host range."""
    node_count: int = 0
    mounted_by: int = 0
    """Compute nodes that mount it."""
    alone: Rates = Rates()
    together: Rates = Rates()
    is_direct: bool = True
    """Caches of the nodes were kept out by O_DIRECT; else data was written out within the time."""
    is_shared_machine: bool = False
    """The nodes are containers of one machine, and so is the storage."""
    nominal_bytes_per_s: float | None = None
    """What the spec and its cloud promise; None: no figure is known."""
    problem: str = ""
    """Why it was not measured, or not wholly; figures may then be of an earlier time."""
    definition: str = ""
    """Digest of the storage in the spec: figures are good for that one alone."""

    @property
    def share(self) -> float | None:
        """Return what all nodes wrote, as a share of the nominal figure."""
        written = self.together.write_bytes_per_s
        if written is None or not self.nominal_bytes_per_s:
            return None
        return written / self.nominal_bytes_per_s


class StorageReport(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `gcluster smoke --storage`."""

    cluster: str
    spec_hash: str
    storage: dict[str, StorageFigures]
    format: str = FORMAT
    left_out: str = ""
    """Compute nodes that were busy or not fit, as a host range."""

    @property
    def passed(self) -> bool:
        """Whether every storage was measured."""
        return not any(figures.problem for figures in self.storage.values())


def definition(storage: Storage) -> str:
    """Return a digest of a storage as the spec has it."""
    return hashlib.sha256(msgspec.json.encode(storage, enc_hook=str)).hexdigest()[:16]


def kept(store: StateStore) -> dict[str, StorageFigures]:
    """Return what was measured last, by the storage's name; {} where nothing was."""
    content = store.get(KEY)
    return {} if content is None else decode_json(content, StorageReport).storage


def keep(store: StateStore, report: StorageReport) -> None:
    """Keep what was measured; figures of a storage that could not be measured now stay."""
    before = kept(store)
    merged = {
        name: before[name]
        if figures.problem and name in before and before[name].definition == figures.definition
        else figures
        for name, figures in report.storage.items()
    }
    content = msgspec.json.encode(msgspec.structs.replace(report, storage=merged))
    store.put(KEY, msgspec.json.format(content))


def write_speeds(store: StateStore, spec: ClusterSpec) -> Mapping[str, WriteSpeed]:
    """Return the measured speeds that hold for a spec: of storage that is as it was."""
    found = {}
    for name, figures in kept(store).items():
        storage = spec.storage.get(name)
        alone, together = figures.alone.write_bytes_per_s, figures.together.write_bytes_per_s
        if storage is None or figures.definition != definition(storage) or not alone:
            continue
        found[name] = WriteSpeed(
            nodes=figures.node_count,
            alone=alone,
            together=together or alone,
            time=figures.time,
        )
    return found
