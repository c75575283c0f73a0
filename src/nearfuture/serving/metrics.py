"""What a server tells Prometheus: its own registry, read when somebody asks."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields

import onnxruntime
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from nearfuture import __version__
from nearfuture.runtime import Dispatcher
from nearfuture.serving.limits import Limits

_BATCHES = (1, 2, 4, 8, 16, 32, 64, 100, 128)
_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class Metrics:
    """The metrics of one server, in a registry of their own.

    Args:
        dispatchers: of its models; their figures are read when the metrics are.
        limits: what it allows.

    Attributes:
        streams: open ones, by model and protocol.
        opened: streams since the start, likewise.
        ended: streams since the start, by why they ended.
        requests: since the start, by route and status; 101 is a websocket that was let in, 499 one
            whose client left before there was an answer.
        refusals: since the start, by code.
        connections: requests and websockets in flight.
        idle_sockets: without a request.
        audio_seconds: heard since the start, by model.
        uploads: recordings that are being decoded, or wait for their first turn.
        upload_wait_seconds: of the one that has waited longest.
        final_seconds: from the end of the audio to the final text, on the server.
    """

    def __init__(self, dispatchers: Mapping[str, Dispatcher], limits: Limits) -> None:
        self.registry = registry = CollectorRegistry()
        self.streams = Gauge(
            "nearfuture_streams", "Open streams.", ["model", "protocol"], registry=registry
        )
        self.opened = Counter(
            "nearfuture_streams_opened",
            "Streams that were opened.",
            ["model", "protocol"],
            registry=registry,
        )
        self.ended = Counter(
            "nearfuture_streams_ended",
            "Streams that ended, by whether their text was finished.",
            ["model", "finished"],
            registry=registry,
        )
        self.requests = Counter(
            "nearfuture_requests",
            "Requests and websockets, by route and status.",
            ["route", "status"],
            registry=registry,
        )
        self.connections = Gauge(
            "nearfuture_connections", "Requests and websockets in flight.", registry=registry
        )
        self.idle_sockets = Gauge(
            "nearfuture_idle_sockets", "Sockets without a request.", registry=registry
        )
        limit = Gauge("nearfuture_limit", "What is allowed.", ["name"], registry=registry)
        for each in fields(limits):  # under the names of the options, where there is one
            name = re.sub("_s$", "_seconds", each.name.replace("most_", "max_"))
            limit.labels(name).set(getattr(limits, each.name))
        build = Info("nearfuture_build", "What runs here.", registry=registry)
        build.info(
            {
                "version": __version__,
                "python": platform.python_version(),
                "onnxruntime": onnxruntime.__version__,
            }
        )
        ProcessCollector(registry=registry)
        self.refusals = Counter(
            "nearfuture_refusals", "What was refused, by code.", ["code"], registry=registry
        )
        self.audio_seconds = Counter(
            "nearfuture_audio_seconds", "Audio that was heard.", ["model"], registry=registry
        )
        self.final_seconds = Histogram(
            "nearfuture_finalisation_seconds",
            "From the end of the audio to the final text, on the server.",
            ["model"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.uploads = Gauge(
            "nearfuture_uploads",
            "Uploaded recordings that are being decoded, or wait for their first turn.",
            ["state"],
            registry=registry,
        )
        self.upload_wait_seconds = Gauge(
            "nearfuture_upload_wait_seconds",
            "How long the upload that has waited longest waits.",
            registry=registry,
        )
        self.ready = Gauge("nearfuture_ready", "Whether new streams are let in.", registry=registry)
        registry.register(_Engines(dispatchers))

    def page(self) -> bytes:
        """All of them in Prometheus' text format."""
        return generate_latest(self.registry)


class _Engines(Collector):
    """What the dispatchers know of themselves, as of now."""

    def __init__(self, dispatchers: Mapping[str, Dispatcher]) -> None:
        self._dispatchers = dispatchers

    def collect(self) -> Iterator[Metric]:
        compute = GaugeMetricFamily(
            "nearfuture_compute_ms",
            "From a quantum being complete to its text, lately.",
            labels=["model", "quantile"],
        )
        final = GaugeMetricFamily(
            "nearfuture_final_compute_ms",
            "From the end of a stream to its last text, lately.",
            labels=["model", "quantile"],
        )
        load = GaugeMetricFamily(
            "nearfuture_load", "Share of the time that open streams need.", labels=["model"]
        )
        behind = GaugeMetricFamily(
            "nearfuture_behind_seconds", "How long the oldest quantum waits.", labels=["model"]
        )
        batches = HistogramMetricFamily(
            "nearfuture_batch_size", "Streams computed together.", labels=["model"]
        )
        for name, dispatcher in self._dispatchers.items():
            stats = dispatcher.stats()
            for family, values in (
                (compute, ((0.5, stats.compute_p50_ms), (0.98, stats.compute_p98_ms))),
                (final, ((0.5, stats.final_p50_ms), (0.98, stats.final_p98_ms))),
            ):
                for quantile, value in values:
                    if value is not None:
                        family.add_metric([name, str(quantile)], value)
            load.add_metric([name], stats.load)
            behind.add_metric([name], stats.behind_s)
            sizes = stats.batch_sizes
            buckets = [
                (str(float(most)), float(sum(n for size, n in sizes.items() if size <= most)))
                for most in _BATCHES
            ]
            buckets.append(("+Inf", float(sum(sizes.values()))))
            total = float(sum(size * n for size, n in sizes.items()))
            batches.add_metric([name], buckets, total)
        yield from (compute, final, load, behind, batches)
