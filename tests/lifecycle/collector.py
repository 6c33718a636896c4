"""A collector of OpenTelemetry on this machine, which keeps what it was sent."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """What was sent."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.spans: list[Any] = []
        self.sent: list[bytes] = []
        """Each request, as it came."""

    def Export(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002  # names of gRPC
        """Take a request."""
        self.sent.append(request.SerializeToString())
        self.spans += [
            span
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        return trace_service_pb2.ExportTraceServiceResponse()


@contextmanager
def listening() -> Iterator[tuple[Collector, str]]:
    """Give a collector and its URL while the body runs."""
    collector = Collector()
    server = grpc.server(futures.ThreadPoolExecutor(1))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(collector, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield collector, f"http://127.0.0.1:{port}"
    finally:
        server.stop(None)
