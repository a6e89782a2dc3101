"""Prometheus metrics of the operator. Labels come from closed sets only: no names of jobs, slices or namespaces."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import generate_latest

_SECONDS = (0.005, 0.02, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0)


class Metrics:
    """Its methods have the shapes of the clients' and the queue's observers."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._reconciles = Histogram(
            "torchtpu_reconcile_seconds",
            "Length of a reconcile, by kind (job, slice, allocation) and result (ok, error).",
            ("kind", "result"),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._calls = Counter(
            "torchtpu_api_calls_total",
            "Calls to kubernetes, gke and ray, by verb and the target's status code.",
            ("target", "verb", "code"),
            registry=self.registry,
        )
        self._queue_depth = Gauge("torchtpu_queue_depth", "Keys that wait for a worker.", registry=self.registry)
        self._queue_age = Gauge(
            "torchtpu_queue_oldest_seconds", "How long the key that waits longest has waited.", registry=self.registry
        )
        self._operations = Gauge(
            "torchtpu_gke_operations_in_flight", "GKE operations of ours that are under way.", registry=self.registry
        )
        self._leader = Gauge("torchtpu_leader", "1 if this replica acts, 0 if it stands by.", registry=self.registry)
        self._resync_age = Gauge(
            "torchtpu_resync_age_seconds", "Seconds since everything was last listed.", registry=self.registry
        )
        self._missed = Counter(
            "torchtpu_watch_missed_total",
            "Objects of which a list showed a newer state than the watch had, by kind.",
            ("kind",),
            registry=self.registry,
        )
        self._events = Counter(
            "torchtpu_events_total",
            "Kubernetes events, by result (written, dropped, failed).",
            ("result",),
            registry=self.registry,
        )
        self._loop_lag = Gauge(
            "torchtpu_event_loop_lag_seconds", "How late the event loop ran its last timer.", registry=self.registry
        )
        self._objects = Gauge("torchtpu_objects", "Objects in the caches, by kind.", ("kind",), registry=self.registry)

    def reconciled(self, *, kind: str, result: str, seconds: float) -> None:
        self._reconciles.labels(kind, result).observe(seconds)

    def called(self, *, target: str, verb: str, code: str) -> None:
        self._calls.labels(target, verb, code).inc()

    def operations(self, count: int) -> None:
        self._operations.set(count)

    def leader(self, acts: bool) -> None:
        self._leader.set(int(acts))

    def missed(self, *, kind: str, count: int) -> None:
        self._missed.labels(kind).inc(count)

    def event(self, result: str) -> None:
        self._events.labels(result).inc()

    def queue(self, *, depth: int, oldest_seconds: float) -> None:
        self._queue_depth.set(depth)
        self._queue_age.set(oldest_seconds)

    def resync_age(self, seconds: float) -> None:
        self._resync_age.set(seconds)

    def loop_lag(self, seconds: float) -> None:
        self._loop_lag.set(seconds)

    def objects(self, *, kind: str, count: int) -> None:
        self._objects.labels(kind).set(count)

    def text(self) -> bytes:
        """The exposition format."""
        return generate_latest(self.registry)
