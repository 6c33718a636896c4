"""What is kept about a cluster: its log, its locks and its secrets, in one object store.

- `StateStore.open(url)`: named objects; `identify(name)` gives the cluster's random id.
- `EventLog(store)`: the only log. `bind(run=, epochs=)`, then `append(SpecApplied(...))`, `read()`.
- `Journal(log)`: runs (running, finished, interrupted), the applied spec, the last smoke.
- `Ledger(log)`: intents and resources, for providers; `intend_many` stores one event for many.
- `acquire(store, sites, reason=)`: the lock, as a context manager giving a `HeldLock`; `unlock`.
- `SecretVault.open(store, spec.secrets, cluster_id, keys_dir)`: `ensure`, `version`, `reveal`,
  `materialise`, `forget_all`.

Everything here raises LifecycleError for what a user can mend: GC900 corrupt, GC901 can't be used,
GC902 from a newer version, GC903 locked, GC904 the lock was lost, GC905 secrets and their key.
"""

from gcluster.lifecycle.state.box import SecretBox
from gcluster.lifecycle.state.bucket import AlreadyExists
from gcluster.lifecycle.state.event import Event
from gcluster.lifecycle.state.events import EventLog
from gcluster.lifecycle.state.journal import Journal, LastSmoke, RunRecord
from gcluster.lifecycle.state.kinds import (
    Body,
    BurstStepped,
    Deletion,
    HostsConverged,
    Intent,
    IntentsStored,
    JobMoved,
    Known,
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
from gcluster.lifecycle.state.ledger import ExistingResource, Ledger
from gcluster.lifecycle.state.lock import (
    HeldLock,
    LockRecord,
    LockState,
    acquire,
    is_held,
    lock_state,
    unlock,
)
from gcluster.lifecycle.state.store import ClusterIdentity, StateStore
from gcluster.lifecycle.state.vault import SecretVault, SecretVersion, munge_key

__all__ = [
    "AlreadyExists",
    "Body",
    "BurstStepped",
    "ClusterIdentity",
    "Deletion",
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
    "is_held",
    "lock_state",
    "munge_key",
    "unlock",
]
