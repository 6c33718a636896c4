"""Serves what an inline program talks to: ResourceMonitor and Engine, over gRPC; and runs it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from google.protobuf import empty_pb2, json_format, struct_pb2
from pulumi.runtime.proto import (
    engine_pb2,
    engine_pb2_grpc,
    language_pb2,
    language_pb2_grpc,
    provider_pb2,
    resource_pb2,
    resource_pb2_grpc,
)

from .clouds import Cloud, CloudError
from .deployment import STACK, UNKNOWN, Deployment, plain
from .events import EventStream

Json = dict[str, Any]  # the engine's JSON
_SIZE = 400 * 1024 * 1024
_OPTIONS = [("grpc.max_receive_message_length", _SIZE), ("grpc.max_send_message_length", _SIZE)]
_FEATURES = (
    resource_pb2.RESOURCE_MONITOR_FEATURE_SECRETS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_RESOURCE_REFERENCES,
    resource_pb2.RESOURCE_MONITOR_FEATURE_OUTPUT_VALUES,
    resource_pb2.RESOURCE_MONITOR_FEATURE_ALIAS_SPECS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_DELETED_WITH,
)
_SEVERITIES = {0: "debug", 1: "info", 2: "warning", 3: "error"}


class Monitor(
    resource_pb2_grpc.ResourceMonitorServicer, engine_pb2_grpc.EngineServicer
):  # its methods are named by the protocol
    """Both services of one run."""

    def __init__(self, deployment: Deployment, cloud: Cloud, events: EventStream) -> None:
        """Serve for a deployment."""
        self._deployment, self._cloud, self._events = deployment, cloud, events
        self._root = ""
        self.ran = threading.Event()
        self.shut = threading.Event()

    def GetDeploymentInfo(self, request: empty_pb2.Empty, context: Any) -> Any:  # noqa: N802  # RPC
        """Say what a program may use."""
        del request, context
        return resource_pb2.DeploymentInfo(supportedFeatures=list(_FEATURES))

    def RegisterResource(self, request: Any, context: Any) -> Any:  # noqa: N802  # RPC
        """Bring one resource about."""
        try:
            wanted = self._wanted(request)
            state = self._deployment.register(wanted)
        except CloudError as error:
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        made = wanted["custom"] and not self._deployment.planning
        bad = "failed" in state
        return resource_pb2.RegisterResourceResponse(
            urn=state["urn"],
            id=state.get("id", ""),  # "" in the preview of what is to be made: unknown
            object=to_struct(self._shown(state)),
            unknown=made or "skipped" in state,  # an output that isn't in `object` is no None
            result=resource_pb2.FAIL if bad else resource_pb2.SUCCESS,
        )

    def RegisterResourceOutputs(self, request: Any, context: Any) -> Any:  # noqa: N802  # RPC
        """Keep the outputs of a component or of the stack."""
        del context
        self._deployment.outputs_of(request.urn, from_struct(request.outputs))
        return empty_pb2.Empty()

    def ReadResource(self, request: Any, context: Any) -> Any:  # noqa: N802  # RPC
        """Read what exists."""
        urn = self._urn(request.parent, request.type, request.name)
        there = self._cloud.read(urn, request.id, from_struct(request.properties))
        if there is None:
            context.abort(grpc.StatusCode.UNKNOWN, f"resource '{request.id}' does not exist")
        return resource_pb2.ReadResourceResponse(urn=urn, properties=to_struct(there or {}))

    def Invoke(self, request: Any, context: Any) -> Any:  # noqa: N802  # RPC
        """Call the cloud."""
        try:
            answer = self._cloud.invoke(request.tok, plain(from_struct(request.args)))
        except CloudError as error:
            context.abort(grpc.StatusCode.UNKNOWN, f"invocation of {request.tok} failed: {error}")
        response = resource_pb2.ResourceInvokeResponse()
        getattr(response, "return").CopyFrom(to_struct(answer))
        return response

    def Call(self, request: Any, context: Any) -> Any:  # noqa: N802  # RPC
        """Refuse: there are no plugins."""
        context.abort(grpc.StatusCode.UNIMPLEMENTED, f"this double has no method {request.tok}")
        return provider_pb2.CallResponse()

    def SignalAndWaitForShutdown(self, request: Any, context: Any) -> Any:  # noqa: N802  # RPC
        """Hold the program until its leftovers are removed, as the engine does."""
        del request, context
        self.ran.set()
        self.shut.wait()
        return empty_pb2.Empty()

    def Log(self, request: Any, context: Any) -> Any:  # noqa: N802  # RPC
        """Pass a message on."""
        del context
        self._events.emit_diagnostic(_SEVERITIES[request.severity], request.message, request.urn)
        return empty_pb2.Empty()

    def GetRootResource(self, request: Any, context: Any) -> Any:  # noqa: N802  # RPC
        """Return the stack's URN."""
        del request, context
        return engine_pb2.GetRootResourceResponse(urn=self._root)

    def SetRootResource(self, request: Any, context: Any) -> Any:  # noqa: N802  # RPC
        """Keep the stack's URN."""
        del context
        self._root = request.urn
        return engine_pb2.SetRootResourceResponse()

    def _urn(self, parent: str, type_: str, name: str) -> str:
        chain = "" if not parent or f"::{STACK}::" in parent else f"{parent.split('::')[2]}$"
        return f"{self._deployment.prefix}{chain}{type_}::{name}"

    def _wanted(self, request: Any) -> Json:
        wanted: Json = {
            "urn": self._urn(request.parent, request.type, request.name),
            "type": request.type,
            "custom": request.custom,
            "inputs": from_struct(request.object),
            "dependencies": sorted(request.dependencies),
            "propertyDependencies": {
                k: sorted(d.urns) for k, d in request.propertyDependencies.items() if d.urns
            },
            "additionalSecretOutputs": sorted(request.additionalSecretOutputs),
            "aliases": [alias.urn or self._alias(request, alias.spec) for alias in request.aliases],
            "ignoreChanges": list(request.ignoreChanges),
            "replaceOnChanges": list(request.replaceOnChanges),
            "deleteBeforeReplace": request.deleteBeforeReplace,
            "importId": request.importId,
        }
        if request.parent:
            wanted["parent"] = request.parent
        if request.protect:
            wanted["protect"] = True
        if request.retainOnDelete:
            wanted["retainOnDelete"] = True
        if request.deletedWith:
            wanted["deletedWith"] = request.deletedWith
        if request.custom and not request.type.startswith("pulumi:"):
            wanted["provider"] = request.provider or self._default_provider(request)
        return wanted

    def _alias(self, request: Any, spec: Any) -> str:
        parent = "" if spec.noParent else spec.parentUrn or request.parent
        return self._urn(parent, spec.type or request.type, spec.name or request.name)

    def _default_provider(self, request: Any) -> str:
        """Return a package's default provider, made by the first resource that needs it."""
        package = request.type.partition(":")[0]
        name = f"default_{request.version.replace('.', '_')}"
        urn = self._urn("", f"pulumi:providers:{package}", name)
        with self._deployment.lock:
            there = self._deployment.find(urn)
            state = there or self._deployment.register(
                {
                    "urn": urn, "type": f"pulumi:providers:{package}", "custom": True,
                    "inputs": {"version": request.version}, "dependencies": [],
                    "propertyDependencies": {}, "replaceOnChanges": [],
                }
            )  # fmt: skip
        return f"{urn}::{state.get('id') or UNKNOWN}"

    def _shown(self, state: Json) -> Json:
        """Return the outputs as the program gets them."""
        outputs = dict(state.get("outputs") or {})
        if not state.get("id"):  # computed outputs are unknown, and so left out
            outputs = {k: v for k, v in outputs.items() if k not in _RESHAPED}
        return outputs


_RESHAPED = {"identity"}
"""Inputs whose outputs have another shape: Azure takes a list of identities and answers a map."""


def run_program(
    client: str, deployment: Deployment, cloud: Cloud, events: EventStream, *, project: str,
    stack: str, work_dir: str,
) -> None:  # fmt: skip
    """Have the caller's LanguageRuntime run its program, then remove what it left out."""
    monitor = Monitor(deployment, cloud, events)
    server = grpc.server(ThreadPoolExecutor(max_workers=64), options=_OPTIONS)
    resource_pb2_grpc.add_ResourceMonitorServicer_to_server(monitor, server)
    engine_pb2_grpc.add_EngineServicer_to_server(monitor, server)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    runtime = language_pb2_grpc.LanguageRuntimeStub(grpc.insecure_channel(client, _OPTIONS))
    running = runtime.Run.future(
        language_pb2.RunRequest(
            project=project, stack=stack, pwd=work_dir, program=".", args=[address],
            monitor_address=address, dryRun=deployment.planning, parallel=8,
            organization="organization",
        )
    )  # fmt: skip
    running.add_done_callback(lambda _: monitor.ran.set())
    monitor.ran.wait()
    failed = running.done() and (running.exception() is not None or running.result().error)
    if failed or events.errors:
        message = str(running.exception() or running.result().error) if failed else ""
        if message and not events.errors:
            events.emit_diagnostic("error", message)
    else:
        deployment.remove_rest()
    monitor.shut.set()
    if not failed and running.result().error and not events.errors:
        events.emit_diagnostic("error", running.result().error)
    server.stop(1).wait()


def to_struct(value: Json) -> struct_pb2.Struct:
    """Return JSON as the protocol sends it."""
    struct = struct_pb2.Struct()
    struct.update(value)
    return struct


def from_struct(struct: struct_pb2.Struct) -> Json:
    """Return JSON; whole numbers are whole."""
    whole: Json = _whole(json_format.MessageToDict(struct))
    return whole


def _whole(value: Any) -> Any:
    """Return a value in which 22.0 is 22: the protocol's numbers are all doubles."""
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value
