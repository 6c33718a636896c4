"""What is kept about a cluster: its events, its locks and what was applied, in one object store.

- `StateStore.open(url)`: named objects; `identify(name)` gives the cluster's random id.
- `EventLog(store)`: the only log. `bind(run=, epochs=)`, then `append(SpecApplied(...))`, `read()`.
- `Journal(log)`: runs (running, finished, interrupted), the applied spec, the last smoke.
- `Ledger(log)`: intents and resources, for providers; `intend_many` stores one event for many.
- `acquire(store, sites, reason=)`: the lock, as a context manager giving a `HeldLock`; `unlock`.
- `keep_applied`, `newest_applied`: spec, catalogs and bundle, as one object each time.

Everything here raises LifecycleError for what a user can fix: GC900 damaged, GC901 can't be used,
GC902 of another format, GC903 locked, GC904 the lock was lost.
"""

from .bucket import AlreadyExists
from .event_types import (
    Body,
    Built,
    BurstStepped,
    DamageAccepted,
    Deletion,
    ExpiryAnnounced,
    ExpiryKind,
    ExpiryWithdrawn,
    HostsConverged,
    Intent,
    IntentsStored,
    JobMoved,
    Known,
    PurchaseAttempted,
    RepairStepped,
    ResourcesCreated,
    ResourcesDeleted,
    ResourcesFailed,
    RoomPromised,
    RunFinished,
    RunStarted,
    SmokeFinished,
    SpecApplied,
    SpecStored,
    StageDone,
    Unreadable,
)
from .events import Event, EventLog
from .journal import (
    Applied,
    Journal,
    RunRecord,
    applied_number,
    newest_applied,
    store_applied,
)
from .ledger import ExistingResource, Ledger
from .lock import (
    HeldLock,
    LockRecord,
    LockState,
    acquire,
    is_held,
    lock_state,
    unlock,
)
from .store import ClusterIdentity, DamagedObjectError, StateStore

__all__ = [
    "AlreadyExists",
    "Applied",
    "Body",
    "Built",
    "BurstStepped",
    "ClusterIdentity",
    "DamageAccepted",
    "DamagedObjectError",
    "Deletion",
    "Event",
    "EventLog",
    "ExistingResource",
    "ExpiryAnnounced",
    "ExpiryKind",
    "ExpiryWithdrawn",
    "HeldLock",
    "HostsConverged",
    "Intent",
    "IntentsStored",
    "JobMoved",
    "Journal",
    "Known",
    "Ledger",
    "LockRecord",
    "LockState",
    "PurchaseAttempted",
    "RepairStepped",
    "ResourcesCreated",
    "ResourcesDeleted",
    "ResourcesFailed",
    "RoomPromised",
    "RunFinished",
    "RunRecord",
    "RunStarted",
    "SmokeFinished",
    "SpecApplied",
    "SpecStored",
    "StageDone",
    "StateStore",
    "Unreadable",
    "acquire",
    "applied_number",
    "is_held",
    "lock_state",
    "newest_applied",
    "store_applied",
    "unlock",
]
