"""Runs as OpenTelemetry spans: a span per run, with each event of the log. The extra `otel`.

Enabled by the standard variables (OTEL_EXPORTER_OTLP_ENDPOINT ...), which the exporter reads
itself; without them nothing of OpenTelemetry is imported.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...cluster.outcome import failure

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

    from .trail import AuditLine

_ASKED = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_LIMIT_MS = 5_000
"""How long a run waits in the end for a collector that doesn't answer."""
_WELL = frozenset({"ok", "pending"})


@contextmanager
def spans() -> Iterator[Callable[[AuditLine], None]]:
    """Give what turns lines of the audit trail into a span; it is sent when the body ends.

    Raises:
        LifecycleError: a collector is named, and the extra isn't installed (GC1151).
    """
    if not any(os.environ.get(name) for name in _ASKED):
        yield lambda _: None
        return
    provider = _provider()
    recorder = SpanRecorder(provider)
    try:
        yield recorder.emit
    finally:
        recorder.end()
        provider.force_flush(_LIMIT_MS)
        provider.shutdown()


class SpanRecorder:
    """One run as a span: begun by its first line, ended by its last."""

    def __init__(self, provider: TracerProvider) -> None:
        """Record nothing yet."""
        self._tracer = provider.get_tracer("gcluster")
        self._span: Span | None = None

    def emit(self, line: AuditLine) -> None:
        """Add an event of the log."""
        from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415  # the extra

        time = int(line.time.timestamp() * 1e9)
        if self._span is None:
            self._span = self._tracer.start_span(
                f"gcluster {line.command}".rstrip(),
                start_time=time,
                attributes={
                    "gcluster.cluster": line.cluster,
                    "gcluster.run": line.run,
                    "gcluster.commit": line.why,
                    "enduser.id": line.who,
                },
            )
        attributes = {f"gcluster.{key}": _plain(value) for key, value in line.data.items()}
        self._span.add_event(line.what, {"gcluster.seq": line.seq, **attributes}, timestamp=time)
        if line.result:
            well = line.result in _WELL
            self._span.set_attribute("gcluster.result", line.result)
            self._span.set_status(Status(StatusCode.OK if well else StatusCode.ERROR))

    def end(self) -> None:
        """End the span, if one was begun."""
        if self._span is not None:
            self._span.end()
            self._span = None


def _plain(value: object) -> str | int | float | bool:
    return value if isinstance(value, (str, int, float, bool)) else json.dumps(value)


def _provider() -> TracerProvider:
    try:
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (  # noqa: PLC0415  # the extra
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError as error:
        raise failure(
            "GC1151",
            "a collector of OpenTelemetry is named, and what talks to it isn't installed",
            hint="pip install 'gcluster[otel]', or unset OTEL_EXPORTER_OTLP_ENDPOINT",
        ) from error
    provider = TracerProvider(resource=Resource.create({"service.name": "gcluster"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider
