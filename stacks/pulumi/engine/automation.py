"""Runs a program for real, through Pulumi's Automation API: the only module that changes a cloud.

All output of the engine is returned as our own values: events, changes, diagnostics.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from secrets import token_hex
from tempfile import NamedTemporaryFile
from typing import Any

import msgspec
from pulumi import automation

from ...provider import ProviderError, ResourceChange, SiteEvent
from ..recording.graph import Values
from .checkpoint import Begun, begun, resources, taken_up
from .command import StackPlace, find_command, left_behind_by, make_backend
from .events import EventFold, translate

_POLL_INTERVAL_S = 0.5


class Existing(msgspec.Struct, frozen=True, kw_only=True):
    """A resource of the cloud to import into the stack."""

    type: str
    """Type token, e.g. aws:ec2/vpc:Vpc."""
    name: str
    id: str
    """The provider's id."""


class Engine:
    """The stack of one site. Every call may be repeated, and may have been killed before."""

    def __init__(
        self,
        place: StackPlace,
        program: Callable[[], None],
        *,
        passphrase: Callable[[], str],
        emit: Callable[[SiteEvent], None],
        total: int = 0,
        command: automation.PulumiCommand | None = None,
        patience_s: float = 600.0,
    ) -> None:
        """Hold what is needed; nothing is run before the first call.

        `passphrase` reads what encrypts secrets in the stack, when the engine is first started;
        only the engine's processes see it, in their environment. `total` is the number of
        resources of the recorded graph, for progress. `patience_s` is the longest wait for the
        engine of a killed run to end: a call that it is at may take the cloud minutes.
        """
        self._place = place
        self._program = program
        self._read_passphrase = passphrase
        self._passphrase = ""
        self._emit = emit
        self._total = total
        self._command = command
        self._patience_s = patience_s
        self._opened: automation.Stack | None = None

    def preview(self) -> tuple[ResourceChange, ...]:
        """Return what `up` would do. Changes nothing; raises ProviderError."""
        with self._folding() as fold:
            self._stack().preview(on_event=fold.take, suppress_progress=True, color="never")
        return fold.changes()

    def up(self, *, again: Iterable[str] = ()) -> tuple[ResourceChange, ...]:
        """Apply the program, recreating the URNs in `again`, and return what was done.

        Raises:
            ProviderError: one diagnostic per resource that failed; the others are kept, and the
                next call continues from them.
        """
        replaced = list(again) or None
        with self._folding() as fold:
            self._freed(
                lambda stack: stack.up(
                    replace=replaced,
                    continue_on_error=True,
                    **_event_options(fold),
                )
            )
        return fold.changes()

    def refresh(self) -> tuple[ResourceChange, ...]:
        """Read back what the cloud has; raises ProviderError.

        What a killed run had begun to create is dropped from the stack, which lacks its id: the
        ledger's intents and the search by tag find it.
        """
        with self._folding() as fold:
            self._freed(
                lambda stack: stack.refresh(
                    clear_pending_creates=True,
                    **_event_options(fold),
                )
            )
        return fold.changes()

    def detect_drift(self) -> tuple[ResourceChange, ...]:
        """Return how the cloud differs from the stack; neither is changed. Raises ProviderError."""
        with self._folding() as fold:
            self._stack().refresh(preview_only=True, **_event_options(fold))
        return fold.changes()

    def destroy(self, *, keep_protected: bool = True) -> tuple[ResourceChange, ...]:
        """Remove what the stack made, but for protected data; raises ProviderError."""
        with self._folding() as fold:
            self._freed(
                lambda stack: stack.destroy(
                    exclude_protected=keep_protected,
                    **_event_options(fold),
                )
            )
        return fold.changes()

    def cancel(self) -> None:
        """Release the stack of a killed run. Requires the site's lock."""
        with self._folding():
            self._stack().cancel()

    def export(self) -> bytes:
        """Return the stack's content, as JSON; secrets in it are ciphertext."""
        with self._folding():
            return self._pulumi("stack", "export", "--stack", self._place.stack).encode()

    def settle(self, take_up: Callable[[Begun, Collection[str]], Mapping[str, str]]) -> None:
        """Have settled what a killed run had begun to make, before anything else is done.

        `take_up` gets it, and the ids of all that the stack has; what it returns (URN -> id of the
        provider) the stack owns from now on, and reads: some are deleted by more than their id.
        Raises ProviderError.
        """
        ids: dict[str, str] = {}

        def edit(exported: bytes) -> bytes | None:
            ids.clear()
            if open_ := begun(exported):
                ids.update(take_up(open_, {one.id for one in resources(exported)}))
            return taken_up(exported, ids) if ids else None

        self.change(edit)
        if ids:
            self.refresh()

    def change(self, edit: Callable[[bytes], bytes | None]) -> None:
        """Import an export that `edit` changed into the stack; None: no change.

        It is how Pulumi fixes a stack ("Editing state files", Pulumi docs, November 2026). The
        Automation API's own export would show secrets, so the command is called here. What the
        engine of a killed run writes meanwhile is read and edited too.
        """
        make_backend(self._place)
        while (edited := edit(exported := self.export())) is not None:
            if self.export() == exported and self._imported(edited):
                return

    def _imported(self, edited: bytes) -> bool:
        """Return whether it was imported; False: the stack was locked, and may have changed."""
        with self._folding(), NamedTemporaryFile(dir=self._place.workdir, suffix=".json") as file:
            file.write(edited)
            file.flush()
            try:
                self._pulumi("stack", "import", "--file", file.name, "--stack", self._place.stack)
            except automation.ConcurrentUpdateError as error:
                self._free(error)
                return False
        return True

    def remove(self) -> None:
        """Remove the stack itself, which has no resources any more, and its history."""
        with self._folding():
            self._freed(lambda stack: stack.workspace.remove_stack(self._place.stack))
        self._opened = None

    def adopt(self, resources: Iterable[Existing]) -> None:
        """Let the stack own what exists (`pulumi import`), protected; raises ProviderError."""
        with self._folding():
            self._stack().import_resources(
                resources=[{"type": r.type, "name": r.name, "id": r.id} for r in resources],
                protect=True,
                generate_code=False,
                show_secrets=False,
            )

    def outputs(self) -> Values:
        """Return the stack's outputs; secret ones are left out."""
        with self._folding():
            found = self._stack().outputs()
        return {name: output.value for name, output in found.items() if not output.secret}

    def _freed(self, call: Callable[[automation.Stack], object]) -> None:
        """Call; where the lock of a killed run blocks it, release the stack and call again.

        Changing a stack requires the site's lock, so no other run of ours is active.
        """
        try:
            call(self._stack())
        except automation.ConcurrentUpdateError as error:
            self._free(error)
            call(self._stack())

    def _free(self, refusal: automation.ConcurrentUpdateError) -> None:
        """Free the stack of a killed run when its engine has ended; else raise the refusal."""
        self._await_end(refusal)
        self._stack().cancel()

    def _await_end(self, refusal: automation.ConcurrentUpdateError) -> None:
        """Return when the engine that holds the lock has ended; else raise the refusal.

        The engine outlives a gcluster that was killed alone, until it can't report any more.
        """
        until = time.monotonic() + self._patience_s
        owners = left_behind_by(str(refusal))
        if owners:
            what = f"waits for the engine of a killed run to end: process {owners[0]}"
            self._emit(SiteEvent(site=self._place.site, done=0, total=self._total, what=what))
        while owners and time.monotonic() < until:
            time.sleep(_POLL_INTERVAL_S)
            owners = left_behind_by(str(refusal))
        if owners != ():
            raise refusal

    def _pulumi(self, *arguments: str) -> str:
        """Run a command of the engine on the stack and return its output."""
        workspace = self._stack().workspace
        environment = self._place.environment(self._passphrase)
        command = self._command or find_command()
        return command.run(list(arguments), workspace.work_dir, environment).stdout

    def _stack(self) -> automation.Stack:
        """Return the stack, created where there is none.

        It is searched for first: creation takes the stack's lock before it finds an existing one
        (pulumi/pulumi, pkg/backend/diy/backend.go), so a killed run's lock would block it.
        """
        if self._opened is None:
            make_backend(self._place)
            self._passphrase = self._read_passphrase()
            self._command = self._command or find_command()
            name, project = self._place.stack, self._place.project
            options = automation.LocalWorkspaceOptions(
                work_dir=str(self._place.workdir),
                project_settings=automation.ProjectSettings(name=project, runtime="python"),
                secrets_provider="passphrase",
                env_vars=self._place.environment(self._passphrase),
                pulumi_command=self._command,
            )
            try:
                self._opened = automation.select_stack(name, project, self._program, opts=options)
            except automation.StackNotFoundError:
                self._opened = self._made(options)
        return self._opened

    def _made(self, options: automation.LocalWorkspaceOptions) -> automation.Stack:
        """Create the stack, also where a run was killed during its creation.

        Such a run leaves the lock of a stack that does not exist, and only existing stacks can be
        released. One is created with another name and renamed, which doesn't check the lock of the
        new name (pulumi/pulumi, pkg/backend/diy/backend.go: renameStack), then freed.
        """
        name, project = self._place.stack, self._place.project
        try:
            return automation.create_stack(name, project, self._program, opts=options)
        except automation.ConcurrentUpdateError as error:
            self._await_end(error)
        spare = f"{name}-{token_hex(4)}"
        stack = automation.create_stack(spare, project, self._program, opts=options)
        stack.rename(name)
        stack.cancel()
        return stack

    @contextmanager
    def _folding(self) -> Iterator[EventFold]:
        """Yield a fold for the events; turn what the engine raises into a ProviderError."""
        fold = EventFold(self._place.site, self._emit, total=self._total)
        try:
            yield fold
        except automation.ConcurrentUpdateError as error:
            raise ProviderError(translate(self._clean(error))) from error
        except automation.CommandError as error:
            found = fold.findings(self._clean(error))
            raise ProviderError(*found, lacking=fold.lacking()) from error

    def _clean(self, error: Exception) -> str:
        """Return the engine's output without the passphrase, should it be in it."""
        return str(error).replace(self._passphrase, "***") if self._passphrase else str(error)


def _event_options(fold: EventFold) -> dict[str, Any]:
    """Return the common options of all calls of the engine: only its events are read."""
    return {
        "on_event": fold.take,
        "suppress_progress": True,
        "show_secrets": False,
        "color": "never",
    }
