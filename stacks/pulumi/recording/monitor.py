"""A double of the engine that records what a program registers, without network access."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec
import pulumi
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime import mocks
from pulumi.runtime.proto import alias_pb2, engine_pb2, provider_pb2, resource_pb2

from ..component import camel_case, tag_argument, text_outputs
from .graph import (
    MARK,
    NO_OPTIONS,
    NO_TIMEOUTS,
    Archive,
    Asset,
    Options,
    RecordedInvoke,
    RecordedResource,
    Reference,
    Secret,
    Timeouts,
    Unknown,
    Value,
    Values,
    short_type,
)

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105  # a signature of the protocol
_ASSET = "c44067f5952c0a294b673a41bacd8c17"
_ARCHIVE = "0def7320c3a5731c473e5ecbe6d01bc7"
_RESOURCE = "5cf8f73096256a8f31e491e813e4eb8e"
_EXACT = 2**53
"""Protobuf numbers are doubles: whole numbers below this are exact."""


def read_struct(struct: struct_pb2.Struct) -> Values:
    """Return the fields as recorded values.

    Raises:
        ValueError: an object uses the key of the markers.
    """
    return {key: read_value(value) for key, value in struct.fields.items()}


def read_value(value: struct_pb2.Value) -> Value:
    """Return one value; raises ValueError as `read_struct`."""
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return Unknown() if value.string_value == UNKNOWN else value.string_value
    if kind == "bool_value":
        return value.bool_value
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() and abs(number) < _EXACT else number
    if kind == "list_value":
        return [read_value(item) for item in value.list_value.values]
    if kind == "struct_value":
        return _object(value.struct_value)
    return None


def _object(struct: struct_pb2.Struct) -> Value:
    fields = struct.fields
    if MARK in fields:
        message = f'an input has the key "{MARK}", which stands for markers in recorded graphs'
        raise ValueError(message)
    if SIGNATURE not in fields:
        return read_struct(struct)
    signature = fields[SIGNATURE].string_value
    if signature == _SECRET:
        return Secret()
    if signature == _RESOURCE:
        return Reference(urn=fields["urn"].string_value)
    if signature in {_ASSET, _ARCHIVE}:
        kind = Asset if signature == _ASSET else Archive
        return kind(sha256=_digest(struct).hexdigest())
    message = f"a value has a signature that is not known: {signature}"
    raise ValueError(message)


def _digest(struct: struct_pb2.Struct) -> hashlib._Hash:
    fields = struct.fields
    if "path" in fields:
        return _digest_path(Path(fields["path"].string_value))
    if "assets" in fields:
        digest = hashlib.sha256()
        parts = fields["assets"].struct_value.fields
        for name in sorted(parts):
            digest.update(f"{name}\0{_digest(parts[name].struct_value).hexdigest()}\n".encode())
        return digest
    text = fields["text"] if "text" in fields else fields["uri"]
    return hashlib.sha256(text.string_value.encode())


def _digest_path(path: Path) -> hashlib._Hash:
    if not path.is_dir():
        return hashlib.sha256(path.read_bytes())
    digest = hashlib.sha256()
    for file in sorted(item for item in path.rglob("*") if item.is_file()):
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"{file.relative_to(path).as_posix()}\0{content}\n".encode())
    return digest


Json: TypeAlias = (
    bool | int | float | str | list["Json"] | tuple["Json", ...] | Mapping[str, "Json"] | None
)
Answer: TypeAlias = Mapping[str, Json] | Callable[[Values], Mapping[str, Json]]
Answers: TypeAlias = Mapping[str, Answer]

STACK = "pulumi:pulumi:Stack"
_FEATURES = (
    resource_pb2.RESOURCE_MONITOR_FEATURE_SECRETS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_RESOURCE_REFERENCES,
    resource_pb2.RESOURCE_MONITOR_FEATURE_ALIAS_SPECS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_DELETED_WITH,
    resource_pb2.RESOURCE_MONITOR_FEATURE_REPLACE_WITH,
    resource_pb2.RESOURCE_MONITOR_FEATURE_PARAMETERIZATION,
)
"""Transforms and hooks are not among them: they need a server of callbacks, and so the engine."""


class NotRecordableError(Exception):
    """The program used something that a recording doesn't support; the engine might refuse too."""


class _NoMocks(mocks.Mocks):
    """The base class requires them; every call that would use them is overridden."""

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, object], None]:
        raise NotRecordableError(args.token)

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, object]]:
        raise NotRecordableError(args.typ)


class RecordingEngine:
    """Takes the log messages of a program."""

    def __init__(self) -> None:
        """Start with none."""
        self.warnings: list[str] = []
        self.errors: list[str] = []

    def Log(self, request: engine_pb2.LogRequest) -> empty_pb2.Empty:  # noqa: N802  # an RPC
        """Keep warnings and errors."""
        if request.severity == engine_pb2.WARNING:
            self.warnings.append(request.message)
        elif request.severity == engine_pb2.ERROR:
            self.errors.append(request.message)
        return empty_pb2.Empty()


class RecordingMonitor(mocks.MockMonitor):
    """Answers each registration at once with the inputs, an id, and names for computed outputs."""

    def __init__(self, *, project: str, stack: str, preview: bool, answers: Answers) -> None:
        """Record under these names; `answers` are for the program's invokes."""
        super().__init__(_NoMocks())
        self._prefix = f"urn:pulumi:{stack}::{project}::"
        self._preview = preview
        self._answers = answers
        self._stack_urn = ""
        self.recorded: dict[str, RecordedResource] = {}
        self._named: dict[tuple[str, str], str] = {}
        self.classes: dict[str, type[pulumi.Resource]] = {}
        self.packages: dict[str, str] = {}
        self.invokes: list[RecordedInvoke] = []
        self.outputs: Values = {}
        self._component_outputs: dict[str, Values] = {}

    def graph_resources(self) -> tuple[RecordedResource, ...]:
        """Return the resources by URN, with what components registered."""
        outputs = self._component_outputs
        done = (
            msgspec.structs.replace(resource, outputs=outputs.get(urn)) if not resource.custom
            else resource
            for urn, resource in self.recorded.items()
        )  # fmt: skip
        return tuple(sorted(done, key=lambda resource: resource.urn))

    def make_urn(self, parent: str, type_: str, name: str) -> str:
        """Return the URN that the engine would give: the types of all parents, then the name."""
        if parent and parent != self._stack_urn:
            type_ = f"{parent.split('::')[2]}${type_}"
        return f"{self._prefix}{type_}::{name}"

    def RegisterResource(  # noqa: N802  # an RPC
        self, request: resource_pb2.RegisterResourceRequest
    ) -> resource_pb2.RegisterResourceResponse:
        """Record a resource; raises NotRecordableError for a second one of the same URN."""
        urn = self.make_urn(request.parent, request.type, request.name)
        if request.type == STACK:
            self._stack_urn = urn
            return resource_pb2.RegisterResourceResponse(urn=urn)
        options = _options(request)
        self._add(urn, request, request.object, options, custom=request.custom)
        self._remember_version(request.type, request.version)
        if not request.custom:
            return resource_pb2.RegisterResourceResponse(urn=urn, object=request.object)
        return resource_pb2.RegisterResourceResponse(
            urn=urn,
            id="" if self._preview else reference(request.type, request.name, "id"),
            object=self._computed(request.type, request.name, request.object),
            unknown=True,  # outputs that are not in `object` stay unknown instead of None
        )

    def ReadResource(  # noqa: N802  # an RPC
        self, request: resource_pb2.ReadResourceRequest
    ) -> resource_pb2.ReadResourceResponse:
        """Record a resource that exists already."""
        urn = self.make_urn(request.parent, request.type, request.name)
        options = Options(read_id=request.id, provider=_without_id(request.provider))
        self._add(urn, request, request.properties, options, custom=True)
        properties = self._computed(request.type, request.name, request.properties)
        return resource_pb2.ReadResourceResponse(urn=urn, properties=properties)

    def RegisterResourceOutputs(  # noqa: N802  # an RPC
        self, request: resource_pb2.RegisterResourceOutputsRequest
    ) -> empty_pb2.Empty:
        """Record the outputs of a component or of the stack."""
        values = read_struct(request.outputs)
        if request.urn == self._stack_urn:
            self.outputs = values
        else:
            self._component_outputs[request.urn] = values
        return empty_pb2.Empty()

    def Invoke(  # noqa: N802  # an RPC
        self, request: resource_pb2.ResourceInvokeRequest
    ) -> resource_pb2.ResourceInvokeResponse:
        """Answer from the table; raises NotRecordableError for what is not in it."""
        arguments = read_struct(request.args)
        text = msgspec.json.encode(arguments, order="sorted").decode()
        self.invokes.append(RecordedInvoke(token=request.tok, arguments=text))
        answer = self._answers.get(request.tok)
        if answer is None:
            message = f'the program asks {request.tok} with {text}; give `answers["{request.tok}"]`'
            raise NotRecordableError(message)
        given = answer(arguments) if callable(answer) else answer
        # ResourceInvokeResponse has a field called "return", a reserved word of Python.
        response = resource_pb2.ResourceInvokeResponse()
        getattr(response, "return").update(msgspec.to_builtins(given))
        return response

    def Call(  # noqa: N802  # an RPC
        self, request: resource_pb2.ResourceCallRequest
    ) -> provider_pb2.CallResponse:
        """Refuse: methods of providers have no answers."""
        message = f"the program calls the method {request.tok}, which only a provider can answer"
        raise NotRecordableError(message)

    def GetDeploymentInfo(  # noqa: N802  # an RPC
        self, request: empty_pb2.Empty  # noqa: ARG002  # required by the protocol
    ) -> resource_pb2.DeploymentInfo:  # fmt: skip
        """Return the features that a program may use."""
        return resource_pb2.DeploymentInfo(supportedFeatures=list(_FEATURES))

    def _add(
        self,
        urn: str,
        request: resource_pb2.RegisterResourceRequest | resource_pb2.ReadResourceRequest,
        inputs: struct_pb2.Struct,
        options: Options,
        *,
        custom: bool,
    ) -> None:
        if urn in self.recorded:
            message = f'two resources of type {request.type} are called "{request.name}"'
            raise NotRecordableError(message)
        known = self._named.setdefault((short_type(request.type), request.name), urn)
        if custom and known != urn:  # references name a type's last part and a name
            message = f"{urn} and {known} are the same in references"
            raise NotRecordableError(message)
        per_input = getattr(request, "propertyDependencies", {})
        resource_class = self.classes.get(request.type)
        argument = tag_argument(resource_class) if resource_class else ""
        self.recorded[urn] = RecordedResource(
            type=request.type,
            name=request.name,
            urn=urn,
            parent="" if request.parent == self._stack_urn else request.parent,
            custom=custom,
            dependencies=tuple(sorted(request.dependencies)),
            property_dependencies={
                k: tuple(sorted(d.urns)) for k, d in per_input.items() if d.urns
            },
            options=NO_OPTIONS if options == NO_OPTIONS else options,
            inputs=read_struct(inputs),
            takes_tags=camel_case(argument),
        )

    def _computed(self, type_: str, name: str, inputs: struct_pb2.Struct) -> struct_pb2.Struct:
        """Return the inputs and, of an applied program, names in place of computed text."""
        outputs = struct_pb2.Struct()
        outputs.CopyFrom(inputs)
        if "identity" in outputs.fields:  # Azure takes a list in it and answers a map
            outputs.fields["identity"].string_value = UNKNOWN
        resource_class = self.classes.get(type_)
        if not self._preview and resource_class is not None:
            for output in text_outputs(resource_class):
                if output not in outputs.fields:
                    outputs.fields[output].string_value = reference(type_, name, output)
        return outputs

    def _remember_version(self, type_: str, version: str) -> None:
        if version:
            self.packages[type_.partition(":")[0]] = version


def reference(type_: str, name: str, output: str) -> str:
    """Return the placeholder of a resource's output: ${Subnet/demo-east-compute.id}."""
    return f"${{{short_type(type_)}/{name}.{output}}}"


def _options(request: resource_pb2.RegisterResourceRequest) -> Options:
    wait = request.customTimeouts
    timeouts = Timeouts(create=wait.create, update=wait.update, delete=wait.delete)
    before = request.deleteBeforeReplace if request.deleteBeforeReplaceDefined else None
    return Options(
        protect=request.protect,
        retain_on_delete=request.retainOnDelete,
        delete_before_replace=before,
        ignore_changes=tuple(request.ignoreChanges),
        replace_on_changes=tuple(request.replaceOnChanges),
        secret_outputs=tuple(request.additionalSecretOutputs),
        aliases=tuple(_alias(alias) for alias in request.aliases),
        timeouts=NO_TIMEOUTS if timeouts == NO_TIMEOUTS else timeouts,
        import_id=request.importId,
        deleted_with=request.deletedWith,
        provider=_without_id(request.provider),
    )


def _alias(alias: alias_pb2.Alias) -> str:
    if alias.urn:
        return alias.urn
    spec = alias.spec
    parts = {"name": spec.name, "type": spec.type, "stack": spec.stack, "project": spec.project}
    parts["parent"] = "none" if spec.noParent else spec.parentUrn
    return " ".join(f"{key}={value}" for key, value in parts.items() if value)


def _without_id(provider: str) -> str:
    """Return the URN of a provider reference "URN::ID"."""
    return provider.rpartition("::")[0]
