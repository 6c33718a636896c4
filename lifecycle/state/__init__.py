"""What is kept about a cluster: its log, its locks and its secrets, in one object store.

- `StateStore.open(url)`: named objects; `identify(name)` gives the cluster's random id.
- `EventLog(store)`: the only log. `bind(run=, epochs=)`, then `append(SpecApplied(...))`, `read()`.
- `Journal(log)`: runs (running, finished, interrupted), the applied spec, the last smoke.
- `Ledger(log)`: intents and resources, for providers; `intend_many` stores one event for many.
- `acquire(store, sites, reason=)`: the lock, as a context manager giving a `HeldLock`; `unlock`.
- `keep_applied`, `newest_applied`: spec, catalogs and bundle, as one object each time.
- `SecretVault.open(store, spec.secrets, cluster_id, keys_dir)`: `ensure`, `version`, `reveal`,
  `materialise`, `forget_all`; its `keyring` holds the data keys, `reencrypt` changes them.

Everything here raises LifecycleError for what a user can mend: GC900 corrupt, GC901 can't be used,
GC902 of another format, GC903 locked, GC904 the lock was lost, GC905 secrets and their key.
"""

from .applied import (
    Applied,
    applied_number,
    keep_applied,
    newest_applied,
)
from .box import SecretBox
from .bucket import AlreadyExists
from .event import Event
from .events import EventLog
from .journal import Journal, LastSmoke, RunRecord
from .kinds import (
    Body,
    Built,
    BurstStepped,
    Deletion,
    EndAnnounced,
    EndKind,
    EndWithdrawn,
    HostsConverged,
    Intent,
    IntentsStored,
    JobMoved,
    Known,
    RepairStepped,
    ResourcesCreated,
    ResourcesDeleted,
    ResourcesFailed,
    RoomPromised,
    RunFinished,
    RungTried,
    RunStarted,
    SmokeFinished,
    SpecApplied,
    StageDone,
    Unreadable,
)
from .ledger import Ledger
from .ledger_fold import ExistingResource
from .lock import (
    HeldLock,
    LockRecord,
    LockState,
    acquire,
    is_held,
    lock_state,
    unlock,
)
from .store import ClusterIdentity, StateStore
from .vault import SecretVault, SecretVersion, munge_key

__all__ = [
    "AlreadyExists",
    "Applied",
    "Body",
    "Built",
    "BurstStepped",
    "ClusterIdentity",
    "Deletion",
    "EndAnnounced",
    "EndKind",
    "EndWithdrawn",
    "Event",
    "EventLog",
    "ExistingResource",
    "HeldLock",
    "HostsConverged",
    "Intent",
    "IntentsStored",
    "JobMoved",
    "Journal",
    "Known",
    "LastSmoke",
    "Ledger",
    "LockRecord",
    "LockState",
    "RepairStepped",
    "ResourcesCreated",
    "ResourcesDeleted",
    "ResourcesFailed",
    "RoomPromised",
    "RunFinished",
    "RunRecord",
    "RunStarted",
    "RungTried",
    "SecretBox",
    "SecretVault",
    "SecretVersion",
    "SmokeFinished",
    "SpecApplied",
    "StageDone",
    "StateStore",
    "Unreadable",
    "acquire",
    "applied_number",
    "is_held",
    "keep_applied",
    "lock_state",
    "munge_key",
    "newest_applied",
    "unlock",
]
