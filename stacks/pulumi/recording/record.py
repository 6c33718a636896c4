"""Runs any Pulumi program without engine, credentials or network, and returns its resources."""

from __future__ import annotations

import asyncio
import contextvars
import gc
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from types import TracebackType
from typing import ParamSpec, TypeVar

import pulumi
from pulumi.runtime import Settings, configure, reset_options, run_in_stack
from pulumi.runtime import register_stack_transformation as transform_all

from .graph import RecordedGraph
from .monitor import Answers, NotRecordableError, RecordingEngine, RecordingMonitor

P = ParamSpec("P")
T = TypeVar("T")


class RecordError(Exception):
    """The program failed; `resource` ("TYPE NAME", or "") is the one it was busy with."""

    def __init__(self, reason: str, *, resource: str = "") -> None:
        """Set what happened and where."""
        super().__init__(f"{resource}: {reason}" if resource else reason)
        self.reason = reason
        self.resource = resource


def record(
    program: Callable[[], object],
    *,
    project: str,
    stack: str,
    preview: bool = False,
    answers: Answers | None = None,
) -> RecordedGraph:
    """Run `program` and return all that it registers, sorted: same program, same graph.

    Ids and computed text appear as `${TYPE/NAME.PROPERTY}` (the type's last part), other computed
    values as `Unknown`. With `preview` both are unknown, as in `pulumi preview`, and so is all that
    is computed from them. `answers` maps invoke tokens (aws:ec2/getAmi:getAmi) to the provider's
    response, in the provider's spelling, or to a function of the arguments.

    Nothing of it stays behind in the SDK, and no thread is started; call it from code that is not
    itself in an event loop.

    Raises:
        RecordError: the program failed, or made a call without a response.
    """
    monitor = RecordingMonitor(project=project, stack=stack, preview=preview, answers=answers or {})
    engine = RecordingEngine()
    settings = _Recording(monitor, engine, project=project, stack=stack, preview=preview)
    # The SDK keeps its state in context variables: in a context of our own it goes when we go.
    contextvars.copy_context().run(settings.run, program)
    if engine.errors:
        raise RecordError("; ".join(engine.errors))
    return RecordedGraph(
        project=project,
        stack=stack,
        preview=preview,
        packages=dict(sorted(monitor.packages.items())),
        resources=monitor.graph_resources(),
        invokes=tuple(sorted(set(monitor.invokes))),
        outputs=monitor.outputs,
        warnings=tuple(engine.warnings),
    )


class _Recording:
    """One run of one program."""

    def __init__(
        self,
        monitor: RecordingMonitor,
        engine: RecordingEngine,
        *,
        project: str,
        stack: str,
        preview: bool,
    ) -> None:
        self._monitor = monitor
        self._engine = engine
        self._project = project
        self._stack = stack
        self._preview = preview
        self._constructed: list[tuple[str, str]] = []

    def run(self, program: Callable[[], object]) -> None:
        reset_options()
        configure(
            Settings(
                project=self._project,
                stack=self._stack,
                monitor=self._monitor,
                engine=self._engine,
                dry_run=self._preview,
                organization="organization",
            )
        )
        try:
            with _event_loop() as loop, _no_collections():
                loop.run_until_complete(run_in_stack(lambda: self._run_program(program)))
        except Exception as error:
            resource = _resource_of(error) or self._first_unregistered()
            raise RecordError(_reason(error), resource=resource) from error
        finally:
            # The SDK keeps values as defaults for contexts that have none, until they are set to
            # None where they are None already: hence twice.
            reset_options()
            reset_options()

    def _run_program(self, program: Callable[[], object]) -> None:
        transform_all(self._remember_class)
        program()

    def _remember_class(self, args: pulumi.ResourceTransformationArgs) -> None:
        self._monitor.classes[args.type_] = type(args.resource)
        self._constructed.append((args.type_, args.name))

    def _first_unregistered(self) -> str:
        """Return the first resource whose inputs never came: their computation failed."""
        there = {(resource.type, resource.name) for resource in self._monitor.recorded.values()}
        missing = (
            f"{kind} {name}" for kind, name in self._constructed if (kind, name) not in there
        )
        return next(missing, "")


class _Inline(ThreadPoolExecutor):
    """An executor without threads: our monitor answers at once. asyncio insists on the base."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call `fn` now."""
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001  # it is raised where the future is awaited
            future.set_exception(error)
        return future


@contextmanager
def _event_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Yield a loop of our own; what is left in it is cancelled, in silence."""
    loop = asyncio.new_event_loop()
    loop.set_default_executor(_Inline())
    loop.set_exception_handler(lambda _loop, _context: None)
    try:
        yield loop
    finally:
        loop.run_until_complete(_cancel_rest())
        loop.close()


async def _cancel_rest() -> None:
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)


@contextmanager
def _no_collections() -> Iterator[None]:
    """Disable the garbage collector: each resource creates about 60 outputs that all stay alive.

    Scanning them repeatedly was two thirds of the time (bench/record_pulumi.py).
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _reason(error: Exception) -> str:
    if isinstance(error, NotRecordableError):
        return str(error)
    return f"{type(error).__name__}: {error}"


def _resource_of(error: BaseException | None) -> str:
    """Return the innermost resource that was being made when the error was raised."""
    seen: list[BaseException] = []
    while error is not None and error not in seen:  # the SDK makes errors their own cause
        found = _resource_in(error.__traceback__)
        if found:
            return found
        seen.append(error)
        error = error.__cause__ or error.__context__
    return ""


def _resource_in(traceback: TracebackType | None) -> str:
    found = ""
    while traceback is not None:
        local = traceback.tb_frame.f_locals
        for name in ("self", "__self__", "res"):  # as constructors and the SDK's calls name it
            resource = local.get(name)
            if isinstance(resource, pulumi.Resource):
                found = _label(resource, local) or found
        traceback = traceback.tb_next
    return found


def _label(resource: pulumi.Resource, local: dict[str, object]) -> str:
    try:
        return f"{resource.pulumi_resource_type} {resource.pulumi_resource_name}"
    except AttributeError:  # its constructor did not get that far
        name = local.get("resource_name") or local.get("name")
        return f"{type(resource).__name__} {name}" if isinstance(name, str) else ""
