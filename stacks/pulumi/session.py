"""Working on one site of any cloud: its folder, the key of its nodes, its stack, its machines."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, cast

from ...inventory.hosts import Host
from ...schemas.catalog import Catalog
from ...schemas.diagnostics import Diagnostic
from ...schemas.spec import CloudSite
from ..io.ssh import (
    HostKeys,
    Waiting,
    await_host_keys,
    ensure_client_key,
    host_keys,
    last_lines,
    public_text,
    with_silence,
)
from ..provider import (
    ControlPlaneAt,
    Leftover,
    Offer,
    ResourceChange,
    ResourceGraph,
    SiteContext,
    SiteEvent,
    SiteOutputs,
)
from .engine.checkpoint import (
    TYPES,
    Begun,
    Owners,
    freed,
    guarded,
    is_machine,
    known_ids,
    mark_protected,
    owners,
    read_made,
    read_output,
    resources,
)
from .hosts import Machine, MachineT, to_hosts
from .plan import CloudPlan, ManagedStorage, managed_storage, volume_plans
from .recording.graph import RecordedGraph

if TYPE_CHECKING:
    from .engine.automation import Engine  # it brings Pulumi


class SiteSession(ABC):
    """Made for each call of a provider, lazy in all its parts; each cloud adds its own."""

    cloud: ClassVar[str]
    title: ClassVar[str]
    """The cloud as people call it."""
    shares_protected: ClassVar[bool] = False
    """Whether a protected resource that is in no storage is there for all of them."""

    boot_limit_s: ClassVar[float] = 900.0
    """Longest wait for host keys, in seconds: our choice, no cloud names a time. Machines with 8
    GPUs test their memory before they boot."""
    keys_at_once: ClassVar[int] = 8
    """Machines whose host key is read at once: all of an account share its rate of requests."""

    def __init__(self, context: SiteContext, catalog: Catalog, api: Any = None) -> None:
        """Set the context; `api` replaces the cloud in tests."""
        self._context = context
        self._catalog = catalog
        self._given = api

    @property
    def _site(self) -> CloudSite:
        return cast("CloudSite", self._context.spec.sites[self._context.site])

    @property
    @abstractmethod
    def plan(self) -> CloudPlan[Any]:
        """The site's plan."""

    @property
    def folder(self) -> Path:
        """This site's own files on this machine."""
        folder = self._context.workdir / f"{self.cloud}-{self._context.site}"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    @cached_property
    def private_key(self) -> Path:
        """The key that logs in to the nodes: the site's own, or one made for the cluster."""
        own = self._site.ssh.key
        return ensure_client_key(self._context.workdir) if own is None else Path(own).expanduser()

    def authorized_key(self) -> str:
        """Return its public key, which the nodes authorize.

        Raises:
            ProviderError: GC968, it is not next to the private one.
        """
        return public_text(self.private_key)

    def _stack(self, program: Callable[[], None], total: int) -> Engine:
        """Return the site's stack, which is stored with the cluster's journal."""
        from .engine.automation import Engine  # noqa: PLC0415  # for the engine only
        from .engine.command import StackPlace  # noqa: PLC0415  # as above

        context = self._context
        place = StackPlace(
            cluster=context.spec.name,
            site=context.site,
            state=context.state,
            workdir=self.folder / "work",
            login=self._engine_login() if self._given is None else {},
        )
        return Engine(place, program, passphrase=context.passphrase, emit=context.emit, total=total)

    def _engine_login(self) -> Mapping[str, str]:
        """Return the variables by which the engine logs in as gcluster does; most need none."""
        return {}

    def engine(self, total: int = 0) -> Engine:
        """Return the site's stack with its program; `total` resources are in it."""
        return self._stack(self._program(), total)

    @abstractmethod
    def preflight(self) -> tuple[Diagnostic, ...]:
        """Check with the cloud what blocks `up`."""

    @abstractmethod
    def offers(self, pool: str) -> tuple[Offer, ...]:
        """Return the price of each of a pool's options, and what a reservation has left."""

    @abstractmethod
    def leftovers(self) -> tuple[Leftover, ...]:
        """List all resources with the site's tags."""

    @abstractmethod
    def hosts(self) -> tuple[Host, ...]:
        """Return the existing machines as hosts, each with the host key that it published.

        Nodes of a control plane that the cloud runs are not among them.

        Raises:
            ProviderError: GC968, a machine shows no host key in time.
        """

    @abstractmethod
    def hosts_of(self, machines: Mapping[str, str]) -> tuple[Host, ...]:
        """Return these machines (name -> id) alone, as `hosts` does."""

    @abstractmethod
    def existing_hosts(self, pool: str) -> Collection[str]:
        """Return the names of the machines that exist, at least those of a pool."""

    @abstractmethod
    def grow(self, pool: str, wanted: list[str], token: str) -> dict[str, str]:
        """Make what is missing of the wanted machines, all or none; return name -> id of all."""

    @abstractmethod
    def is_left(self, pool: str, missing: list[str], token: str) -> bool:
        """Check whether anything of a refused burst exists after all."""

    @abstractmethod
    def shrink(self, names: set[str]) -> dict[str, str]:
        """End elastic machines; return name -> id of those that are gone."""

    @abstractmethod
    def end_elastic(self) -> dict[str, str]:
        """End the machines that bursts made; return name -> id of those that are gone with it."""

    def before_up(self) -> None:  # noqa: B027  # not abstract: most have nothing to see to
        """Do what must be done before the engine applies the program."""

    def after_up(self) -> None:  # noqa: B027  # as above
        """See to what the engine can't do, once it is through."""

    @abstractmethod
    def _program(self) -> Callable[[], None]:
        """Return the site's program, its machines on the options that were taken."""

    def _record(self) -> RecordedGraph:
        """Return the site's program as recorded offline."""
        from .program import record_site  # noqa: PLC0415  # it brings Pulumi

        return record_site(self._context.spec, self._context.site, self._catalog)

    @abstractmethod
    def _data_names(self) -> Mapping[str, Iterable[str]]:
        """Return name of a resource or component -> the storage that it is made for."""

    def outputs(self) -> SiteOutputs:
        """Return the stack's outputs, read once, and the cloud's facts of existing resources."""
        spec, site = self._context.spec, self._context.site
        mine = managed_storage(spec, site)
        made = [name for name, storage in mine.items() if storage.is_made]
        made += [plan.storage for plan in volume_plans(spec, site)]
        asks = bool(made) or self._gives_pods_networks()
        answer = self._bare_engine().outputs() if asks and self.has_stack else {}
        there = {name: storage for name, storage in mine.items() if storage.existing}
        devices = {name: self._existing_device(storage) for name, storage in there.items()}
        return read_made(answer, made, devices)

    def _gives_pods_networks(self) -> bool:
        """Return whether the cloud's control plane gives pods the interfaces of a fabric."""
        return False

    @abstractmethod
    def _existing_device(self, storage: ManagedStorage) -> str:
        """Query the mount parameters of an existing file system; raises ProviderError."""

    def owners(self) -> Owners:
        """Return which storage each protected resource is there for; {} where nothing is made."""
        named = self._data_names()
        if not named:
            return {}
        everything = {name for names in named.values() for name in names}
        return owners(self._record(), named, others=everything if self.shares_protected else ())

    def _await_host_keys(
        self, machines: Iterable[str], read: Callable[[str], tuple[str, ...]]
    ) -> HostKeys:
        """Return the host keys of machines, by their ids in the cloud; progress is shown.

        Args:
            machines: ids.
            read: reads the keys of one; () where it shows none yet.
        """
        waiting = Waiting(
            patience_s=self.boot_limit_s, progress=self._show_keys, at_once=self.keys_at_once
        )
        cache = self.folder / "host-keys.json"
        return await_host_keys(machines, read, cache=cache, waiting=waiting)

    def _as_hosts(
        self,
        machines: Iterable[Machine],
        shown: HostKeys,
        requested: Collection[str],
        console: Callable[[str], str] = lambda _: "",
    ) -> tuple[Host, ...]:
        """Return machines as hosts; those without a key have the reason.

        Args:
            machines: all of the site, since the bastion is among them.
            shown: the host keys that were read.
            requested: ids of those that are wanted.
            console: returns the console's output of one, by its id.
        """
        every = tuple(machines)
        via, file = self._site.ssh.via, str(self.private_key)
        ids = {machine.host: machine.id for machine in every if machine.id in requested}
        hosts = to_hosts(self.plan, every, shown.keys, key_file=file, via=via)
        return with_silence(
            (host for host in hosts if host.name in ids),
            {name: shown.silent[id_] for name, id_ in ids.items() if id_ in shown.silent},
            self.title,
            lambda name: last_lines(console(ids[name])),
        )

    def _show_keys(self, done: int, total: int) -> None:
        what = f"{done} of {total} machines have shown their host key"
        self._context.emit(SiteEvent(site=self._context.site, done=done, total=total, what=what))

    @property
    def has_stack(self) -> bool:
        """Whether a stack was ever begun; it is made with its passphrase."""
        return bool(self._context.passphrase())

    def preview(self, graph: Callable[[], ResourceGraph]) -> tuple[ResourceChange, ...]:
        """Return what the engine would do; without a stack everything is to be made."""
        if self.has_stack:
            return self.engine().preview()
        return tuple(ResourceChange(effect="create", resource=r) for r in graph().resources)

    def control_plane(self, region: str) -> ControlPlaneAt | None:
        """Return the access to the stack's control plane; None: it has none.

        Outputs alone don't show it: where data is kept, they outlive what was destroyed.
        """
        if not self.has_stack:
            return None
        engine = self._bare_engine()
        is_there = any(one.type in TYPES for one in resources(engine.export()))
        return read_output(engine.outputs(), region) if is_there else None

    def bring_up(self, total: int) -> None:
        """Settle what a killed run had begun, read back what is there, then make it so."""
        engine = self.engine(total)
        engine.settle(self._settle)
        engine.refresh()
        engine.up()

    @abstractmethod
    def _settle(self, begun: Begun, known: Collection[str]) -> dict[str, str]:
        """Take up what a killed run made and did not write down, or end it: it'd be there twice.

        `known` are ids of what the stack has. Returns URN -> id of what is taken up.
        """

    def recreate(self, total: int, names: Iterable[str]) -> None:
        """Read back what is there, then make it so, these machines from scratch; ProviderError."""
        engine, wanted = self.engine(total), set(names)
        engine.settle(self._settle)
        engine.refresh()
        there = resources(engine.export())
        engine.up(again=[r.urn for r in there if is_machine(r) and r.name in wanted])

    def take_down(self) -> bool:
        """Remove what the stack made but for data that is kept; return whether nothing is left.

        Data that was named for deletion loses its protection first, all other gets it back: a run
        may have been killed between the two.
        """
        if not self.has_stack:
            return True
        engine, owned = self._bare_engine(), self.owners()
        engine.settle(self._settle)  # first: changing a stack drops what was begun
        if owned:
            free = freed(owned, self._context.delete_data)
            guard = {key: key not in free for key in owned}
            engine.change(lambda exported: guarded(exported, guard))
        engine.destroy(keep_protected=True)
        if resources(engine.export()):
            return False
        engine.remove()
        shutil.rmtree(self.folder, ignore_errors=True)
        return True

    def mark_protected(self, found: tuple[Leftover, ...]) -> tuple[Leftover, ...]:
        """Mark what `down` keeps of what was found; the stack is only read if there is data."""
        if not self.has_stack or not any(item.kept_data for item in found):
            return found
        stack = resources(self._bare_engine().export())
        return mark_protected(found, stack, self.owners(), self._context.delete_data)

    def detect_drift(self) -> tuple[ResourceChange, ...]:
        """Return how the cloud differs from the stack; () where there is none."""
        return self._bare_engine().detect_drift() if self.has_stack else ()

    def machine_ids(self) -> dict[str, str]:
        """Return name -> the cloud's id of each machine in the stack; {} where there is none."""
        if not self.has_stack:
            return {}
        there = resources(self._bare_engine().export())
        return {one.name: one.id for one in there if is_machine(one) and one.id}

    def tracked_ids(self, found: Iterable[Leftover]) -> frozenset[str]:
        """Return the ids of the stack's resources among what was found."""
        if not self.has_stack:
            return frozenset()
        return known_ids(found, resources(self._bare_engine().export()))

    def cancel(self) -> bool:
        """Free the stack of a run that was killed; False: there is none."""
        if not self.has_stack:
            return False
        self._bare_engine().cancel()
        return True

    def _bare_engine(self) -> Engine:
        """Return the stack for operations that need no program: its checkpoint has what exists."""
        return self._stack(lambda: None, 0)


class ListingSession(SiteSession, Generic[MachineT]):
    """A site of a cloud that lists its machines one by one, with names and bursts as tags."""

    @abstractmethod
    def machines(self) -> tuple[MachineT, ...]:
        """Return the machines that exist."""

    def host_name(self, machine: MachineT) -> str:
        """Return a machine's name in the cluster; "" while it has none."""
        return machine.host

    @abstractmethod
    def _is_node(self, machine: MachineT) -> bool:
        """Return whether it is reached over SSH: not where the cloud's control plane runs it."""

    def _read_keys(self, machine: MachineT) -> tuple[str, ...]:
        """Return the host keys that a machine shows; () while it shows none."""
        return host_keys(self._console(machine))

    @abstractmethod
    def _console(self, machine: MachineT) -> str:
        """Return what a machine's console shows; "" where it can't be read."""

    @abstractmethod
    def _seen(self, machines: Sequence[MachineT], wanted: Sequence[MachineT]) -> Iterable[Machine]:
        """Return all machines of the site in the form of hosts, `wanted` with their topology."""

    @abstractmethod
    def _end(self, machines: Sequence[MachineT]) -> None:
        """End machines."""

    def _token(self, token: str) -> str:
        """Return a burst's token as machines have it."""
        return token

    def hosts(self) -> tuple[Host, ...]:
        """Return the machines that exist as hosts, each with its pinned host key."""
        machines = self.machines()
        return self._hosts(machines, machines)

    def hosts_of(self, machines: Mapping[str, str]) -> tuple[Host, ...]:
        """Return these machines alone."""
        there, ids = self.machines(), set(machines.values())
        return self._hosts(there, [machine for machine in there if machine.id in ids])

    def _hosts(self, machines: Sequence[MachineT], chosen: Iterable[MachineT]) -> tuple[Host, ...]:
        wanted = {machine.id: machine for machine in chosen if self._is_node(machine)}
        keys = self._await_host_keys(wanted, lambda id_: self._read_keys(wanted[id_]))
        seen = self._seen(machines, list(wanted.values()))
        return self._as_hosts(seen, keys, wanted, lambda id_: self._console(wanted[id_]))

    def existing_hosts(self, pool: str) -> Collection[str]:
        """Return the names of all machines that exist."""
        del pool
        return {self.host_name(machine) for machine in self.machines()}

    def is_left(self, pool: str, missing: list[str], token: str) -> bool:
        """Return whether a machine has the burst's token."""
        del pool, missing
        return any(machine.token == self._token(token) for machine in self.machines())

    def _settle(self, begun: Begun, known: Collection[str]) -> dict[str, str]:
        names = [one.name for one in begun if is_machine(one)]
        if names:
            self._end([
                machine
                for machine in self.machines()
                if machine.id not in known
                and not machine.token
                and any(name.endswith(f"-{self.host_name(machine)}") for name in names)
            ])  # fmt: skip
        return {}

    def end_elastic(self) -> dict[str, str]:
        """End the machines that bursts made; return name -> id."""
        elastic = [machine for machine in self.machines() if machine.token]
        self._end(elastic)
        return {self.host_name(machine): machine.id for machine in elastic}
