"""The metrics of a server for Prometheus, in a registry of its own."""

from __future__ import annotations

import dataclasses
import platform
import re
from collections.abc import Iterator, Mapping

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
from nearfuture.runtime import Dispatcher, DispatchStats
from nearfuture.serving.limits import ServerLimits

_BATCHES = (1, 2, 4, 8, 16, 32, 64, 100, 128)
_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class Metrics:
    """The metrics of one server; docs/serving.md lists them.

    Args:
        dispatchers: of its models; their statistics are read when the metrics are.
        limits: what it allows.
    """

    def __init__(self, dispatchers: Mapping[str, Dispatcher], limits: ServerLimits) -> None:
        self._registry = registry = CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"nearfuture_{name}", text, labels, registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"nearfuture_{name}", text, labels, registry=registry)

        self.streams = gauge("streams", "Open streams.", "model", "protocol")
        self.opened = counter("streams_opened", "Streams opened.", "model", "protocol")
        self.ended = counter(
            "streams_ended",
            "Streams ended, by whether their text was complete.",
            "model",
            "complete",
        )
        self.requests = counter(
            "requests",
            "Requests and websockets, by route and status: 101 is a websocket that was accepted, "
            "499 a client that left before there was an answer.",
            "route",
            "status",
        )
        self.errors = counter("errors", "Refusals and failures, by code.", "code")
        self.audio = counter("audio_seconds", "Audio that was received.", "model")
        self.connections = gauge("connections", "Requests and websockets in flight.")
        self.idle_sockets = gauge("idle_sockets", "Sockets without a request.")
        self.uploads = gauge(
            "uploads",
            "Uploaded recordings that are being decoded, or wait for their first turn.",
            "state",
        )
        self.upload_wait = gauge(
            "upload_wait_seconds", "How long the upload that has waited longest waits."
        )
        self.ready = gauge("ready", "Whether new streams are accepted.")
        self.finalisation = Histogram(
            "nearfuture_finalisation_seconds",
            "From the end of the audio to the final text, on the server.",
            ["model"],
            buckets=_SECONDS,
            registry=registry,
        )
        limit = gauge("limit", "What is allowed, by the name of the option.", "name")
        for name, value in dataclasses.asdict(limits).items():
            limit.labels(re.sub("_s$", "_seconds", name)).set(value)
        Info("nearfuture_build", "The versions that run.", registry=registry).info(
            {
                "version": __version__,
                "python": platform.python_version(),
                "onnxruntime": onnxruntime.__version__,
            }
        )
        ProcessCollector(registry=registry)
        registry.register(_DispatcherCollector(dispatchers))

    def page(self) -> bytes:
        """Return all of them in Prometheus' text format."""
        return generate_latest(self._registry)


class _DispatcherCollector(Collector):
    """The statistics of the dispatchers at the moment of the request."""

    def __init__(self, dispatchers: Mapping[str, Dispatcher]) -> None:
        self._dispatchers = dispatchers

    def collect(self) -> Iterator[Metric]:
        stats = {name: dispatcher.stats() for name, dispatcher in self._dispatchers.items()}
        compute = GaugeMetricFamily(
            "nearfuture_compute_seconds",
            "From a complete quantum to its text, over the last few thousand.",
            labels=["model", "quantile"],
        )
        final = GaugeMetricFamily(
            "nearfuture_final_compute_seconds",
            "From the end of a stream to its last text, over the last few thousand.",
            labels=["model", "quantile"],
        )
        load = GaugeMetricFamily(
            "nearfuture_load_ratio",
            "Share of real time that the open streams need.",
            labels=["model"],
        )
        lag = GaugeMetricFamily(
            "nearfuture_lag_seconds", "How long the oldest quantum has waited.", labels=["model"]
        )
        batches = HistogramMetricFamily(
            "nearfuture_batch_size", "Streams computed together.", labels=["model"]
        )
        for name, now in stats.items():
            for family, p50_ms, p98_ms in (
                (compute, now.compute_p50_ms, now.compute_p98_ms),
                (final, now.final_p50_ms, now.final_p98_ms),
            ):
                for quantile, ms in (("0.5", p50_ms), ("0.98", p98_ms)):
                    if ms is not None:
                        family.add_metric([name, quantile], ms / 1000)
            load.add_metric([name], now.load)
            lag.add_metric([name], now.behind_s)
            batches.add_metric([name], *_histogram(now))
        yield from (compute, final, load, lag, batches)


def _histogram(stats: DispatchStats) -> tuple[list[tuple[str, float]], float]:
    """Return the buckets of the batch sizes, and the sum of the sizes."""
    sizes = stats.batch_sizes
    buckets = [
        (str(float(bound)), float(sum(n for size, n in sizes.items() if size <= bound)))
        for bound in _BATCHES
    ]
    buckets.append(("+Inf", float(sum(sizes.values()))))
    return buckets, float(sum(size * n for size, n in sizes.items()))
