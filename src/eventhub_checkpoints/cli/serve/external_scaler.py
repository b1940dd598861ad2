"""KEDA's external scaler: its messages, and a gRPC server that answers them.

The names in a trigger's metadata are those of KEDA's own `azure-eventhub` trigger, so a
ScaledObject changes its type and its address only.

Source: KEDA at 125494be, `pkg/scalers/externalscaler/externalscaler.proto` (names, numbers and
types of the fields) and `pkg/scalers/external_scaler.go` (how KEDA calls them).
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from eventhub_checkpoints._shared.listening import not_available
from eventhub_checkpoints._shared.program import as_typed
from eventhub_checkpoints.errors import CheckpointStoreError, ConfigurationError
from eventhub_checkpoints.operations.monitor import Monitor
from eventhub_checkpoints.operations.scale import Demand, number_in
from eventhub_checkpoints.records import Scope

PACKAGE = "externalscaler"
SERVICE = f"{PACKAGE}.ExternalScaler"
METRIC_NAME = "unprocessed-events"
STREAMS = 100
"""Streams at the same time, each of which occupies a thread: one for each ScaledObject of type
`external-push`."""
THREADS = STREAMS + 20
CHECK_SECONDS = 1.0
"""Interval at which a stream checks whether its client is still there."""

Field = descriptor_pb2.FieldDescriptorProto
MESSAGES: Mapping[str, tuple[tuple[str, int, Any], ...]] = {
    "ScaledObjectRef": (
        ("name", 1, Field.TYPE_STRING),
        ("namespace", 2, Field.TYPE_STRING),
        ("scalerMetadata", 3, "map"),
    ),
    "IsActiveResponse": (("result", 1, Field.TYPE_BOOL),),
    "GetMetricSpecResponse": (("metricSpecs", 1, "repeated MetricSpec"),),
    "MetricSpec": (
        ("metricName", 1, Field.TYPE_STRING),
        ("targetSize", 2, Field.TYPE_INT64),
        ("targetSizeFloat", 3, Field.TYPE_DOUBLE),
    ),
    "GetMetricsRequest": (
        ("scaledObjectRef", 1, "ScaledObjectRef"),
        ("metricName", 2, Field.TYPE_STRING),
    ),
    "GetMetricsResponse": (("metricValues", 1, "repeated MetricValue"),),
    "MetricValue": (
        ("metricName", 1, Field.TYPE_STRING),
        ("metricValue", 2, Field.TYPE_INT64),
        ("metricValueFloat", 3, Field.TYPE_DOUBLE),
    ),
}
"""Name, number and type of the fields of each message; `map` is one from string to string."""


def message_classes() -> Mapping[str, Any]:
    """Build the classes of the messages, without generated code.

    They have a pool of their own: another package may have registered KEDA's file in the default
    one.
    """
    file = descriptor_pb2.FileDescriptorProto(
        name="externalscaler.proto", package=PACKAGE, syntax="proto3"
    )
    for message_name, fields in MESSAGES.items():
        message = file.message_type.add(name=message_name)
        for name, number, kind in fields:
            field = message.field.add(name=name, number=number, label=Field.LABEL_OPTIONAL)
            if not isinstance(kind, str):
                field.type = kind
                continue
            # A map is a repeated message with the fields `key` and `value`.
            if kind == "map":
                kind = f"repeated {message_name}.ScalerMetadataEntry"
                entry = message.nested_type.add(name="ScalerMetadataEntry")
                entry.options.map_entry = True
                for at, part in enumerate(("key", "value"), start=1):
                    entry.field.add(
                        name=part, number=at, type=Field.TYPE_STRING, label=Field.LABEL_OPTIONAL
                    )
            if kind.startswith("repeated "):
                field.label = Field.LABEL_REPEATED
            field.type = Field.TYPE_MESSAGE
            field.type_name = f".{PACKAGE}.{kind.removeprefix('repeated ')}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))
        for name in MESSAGES
    }


CLASSES = message_classes()


class ExternalScaler:
    """Answers KEDA's calls, from what a monitor knows.

    Args:
        monitor: polls the groups.
        target: unprocessed events for each replica, where a trigger names no other number.
    """

    def __init__(self, monitor: Monitor, target: int) -> None:
        self._monitor = monitor
        self._target = target
        self._streams = threading.BoundedSemaphore(STREAMS)

    def is_active(self, reference: Any, context: grpc.ServicerContext) -> Any:
        """Return whether at least one consumer should run."""
        return CLASSES["IsActiveResponse"](result=self._demand(reference, context).is_active)

    def stream_is_active(self, reference: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        """Yield the same as soon as it is known, and whenever it changes.

        While it is unknown, nothing is sent. An error would end the stream, and KEDA waits up to a
        minute before it opens another one; it learns of the error by its other calls.
        """
        scope = self._scope(reference, context)
        if not self._streams.acquire(blocking=False):
            context.abort(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"{STREAMS} streams are open; use type external, or another {as_typed('serve')}",
            )
        try:
            seen, sent = -1, None
            while context.is_active() and not self._monitor.is_stopped:
                version = self._monitor.wait(seen, CHECK_SECONDS)
                if version == seen:
                    continue
                seen = version
                try:
                    is_active = self._demand_of(scope, reference).is_active
                except ConfigurationError as refusal:
                    context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(refusal))
                except CheckpointStoreError:
                    continue
                if is_active is not sent:
                    sent = is_active
                    yield CLASSES["IsActiveResponse"](result=is_active)
        finally:
            self._streams.release()

    def get_metric_spec(self, reference: Any, context: grpc.ServicerContext) -> Any:
        """Return the name of the metric and the target; it is known even if the lag is not."""
        self._scope(reference, context)
        metadata = reference.scalerMetadata
        try:
            target = number_in(metadata, "unprocessedEventThreshold", self._target, 1)
        except ConfigurationError as refusal:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(refusal))
        specification = CLASSES["MetricSpec"](
            metricName=METRIC_NAME, targetSize=target, targetSizeFloat=target
        )
        return CLASSES["GetMetricSpecResponse"](metricSpecs=[specification])

    def get_metrics(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Return the metric."""
        scale = self._demand(request.scaledObjectRef, context).scale
        value = CLASSES["MetricValue"](
            metricName=request.metricName or METRIC_NAME, metricValue=scale, metricValueFloat=scale
        )
        return CLASSES["GetMetricsResponse"](metricValues=[value])

    def _demand(self, reference: Any, context: grpc.ServicerContext) -> Demand:
        scope = self._scope(reference, context)
        try:
            return self._demand_of(scope, reference)
        except ConfigurationError as refusal:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(refusal))
        except CheckpointStoreError as failure:
            context.abort(grpc.StatusCode.UNAVAILABLE, str(failure))
        raise AssertionError("abort raises")

    def _demand_of(self, scope: Scope, reference: Any) -> Demand:
        metadata = reference.scalerMetadata
        target = number_in(metadata, "unprocessedEventThreshold", self._target, 1)
        activation = number_in(metadata, "activationUnprocessedEventThreshold", 0)
        return self._monitor.status(scope).demand(target, activation)

    def _scope(self, reference: Any, context: grpc.ServicerContext) -> Scope:
        """Return the group that a trigger names; abort the call if it is not exactly one."""
        metadata = reference.scalerMetadata
        scopes = self._monitor.find(
            metadata.get("eventHubNamespace", ""),
            metadata.get("eventHubName", ""),
            metadata.get("consumerGroup", ""),
        )
        if len(scopes) != 1:
            served = ", ".join(str(scope) for scope in self._monitor.find())
            context.abort(
                grpc.StatusCode.INVALID_ARGUMENT if scopes else grpc.StatusCode.NOT_FOUND,
                f"the metadata eventHubNamespace, eventHubName and consumerGroup name "
                f"{len(scopes)} groups; expected one of: {served}",
            )
        return scopes[0]


def serve(host: str, port: int, monitor: Monitor, target: int) -> tuple[Any, int]:
    """Start the server; return it, and the port that it listens on.

    Args:
        host: address to listen on.
        port: 0 takes a free one.
        monitor: polls the groups.
        target: see `ExternalScaler`.

    Raises:
        ConfigurationError: the address is not available.
    """
    scaler = ExternalScaler(monitor, target)
    reference, request = CLASSES["ScaledObjectRef"], CLASSES["GetMetricsRequest"]
    unary: Callable[..., Any] = grpc.unary_unary_rpc_method_handler
    handlers = {
        name: kind(
            method,
            request_deserializer=argument.FromString,
            # All messages have this method.
            response_serializer=lambda message: message.SerializeToString(),
        )
        for name, kind, method, argument in (
            ("IsActive", unary, scaler.is_active, reference),
            (
                "StreamIsActive",
                grpc.unary_stream_rpc_method_handler,
                scaler.stream_is_active,
                reference,
            ),
            ("GetMetricSpec", unary, scaler.get_metric_spec, reference),
            ("GetMetrics", unary, scaler.get_metrics, request),
        )
    }
    server = grpc.server(
        ThreadPoolExecutor(THREADS, thread_name_prefix="keda"),
        # Otherwise a second process could listen on the same port and get half of the calls.
        options=[("grpc.so_reuseport", 0)],
    )
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(SERVICE, handlers)])
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        bound = server.add_insecure_port(address)
    except RuntimeError:
        bound = 0
    if not bound:
        raise not_available(host, port, option="--grpc-port")
    server.start()
    return server, bound
