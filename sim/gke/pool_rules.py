"""What CreateNodePool refuses for any machine: names, labels, taints, zones, settings that exclude each other."""

import re
from typing import Any

from google.cloud import container_v1 as gke

from sim.gke.errors import invalid
from sim.gke.settings import Settings

NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
NAME_LIMIT = 40
LABEL_TOTAL_LIMIT = 1024
"""Characters of all Kubernetes labels of one request, keys and values."""
RUN_SECONDS = range(600, 604_801)
MAX_PODS = range(8, 257)
SHUTDOWN_SECONDS = (0, 30, 120)
SYSTEM_LABEL = re.compile(r"(^|\.)(cloud\.google\.com|kubernetes\.io|k8s\.io|gke\.io)/")
LABEL_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
RESOURCE_LABEL_KEY = re.compile(r"[a-z][-_a-z0-9]{0,62}")
RESOURCE_LABEL_VALUE = re.compile(r"[-_a-z0-9]{0,63}")
RESOURCE_LABEL_LIMIT = 64


def check_pool(pool: Any, settings: Settings) -> None:
    """Raise GkeError for what GKE refuses before an operation begins."""
    _check_name(pool.name)
    _check_zones(pool, settings)
    _check_labels(pool.config)
    _check_taints(pool.config)
    _check_management(pool, settings)
    _check_kubelet(pool.config)
    _check_autoscaling(pool)
    if "max_run_duration" in pool.config and pool.config.max_run_duration.total_seconds() not in RUN_SECONDS:
        raise invalid("maxRunDuration must be between 600s and 604800s.")
    if "max_pods_constraint" in pool and pool.max_pods_constraint.max_pods_per_node not in MAX_PODS:
        raise invalid("Max pods per node must be between 8 and 256.")
    if pool.initial_node_count < 0:
        raise invalid("Initial node count must not be negative.")


def effective_zones(pool: Any, settings: Settings) -> tuple[str, ...]:
    """Each gets `initialNodeCount` nodes; a pool without locations spreads over every zone of the cluster."""
    return tuple(pool.locations) or settings.zones


def _check_name(name: str) -> None:
    if len(name) > NAME_LIMIT:
        raise invalid(f"Node pool name '{name}' has {len(name)} characters, it must have at most {NAME_LIMIT}.")
    if not NAME.fullmatch(name):
        raise invalid(f"Invalid value for field 'node_pool.name': '{name}'. Must match '{NAME.pattern}'.")


def _check_zones(pool: Any, settings: Settings) -> None:
    for zone in pool.locations:
        if not re.fullmatch(re.escape(settings.region) + "-[a-z]", zone):
            raise invalid(f"Zone '{zone}' is not in the region '{settings.region}' of the cluster.")
    if len(set(pool.locations)) != len(pool.locations):
        raise invalid("Locations of a node pool must be distinct.")


def _check_labels(config: Any) -> None:
    total = 0
    for key, value in config.labels.items():
        total += len(key) + len(value)
        if SYSTEM_LABEL.search(key):
            raise invalid(f"Invalid field 'node.labels': label '{key}' uses a prefix that is reserved for the system.")
        if not LABEL_KEY.fullmatch(key) or not LABEL_VALUE.fullmatch(value):
            raise invalid(f"Invalid field 'node.labels': '{key}={value}' is not a Kubernetes label.")
    if total > LABEL_TOTAL_LIMIT:
        raise invalid(f"Kubernetes labels have {total} characters in total, more than {LABEL_TOTAL_LIMIT}.")
    if len(config.resource_labels) > RESOURCE_LABEL_LIMIT:
        raise invalid(f"Resource labels are limited to {RESOURCE_LABEL_LIMIT}, got {len(config.resource_labels)}.")
    for key, value in config.resource_labels.items():
        if not RESOURCE_LABEL_KEY.fullmatch(key) or not RESOURCE_LABEL_VALUE.fullmatch(value):
            raise invalid(f"Invalid field 'resourceLabels': '{key}={value}': lower case, digits, - and _ up to 63.")


def _check_taints(config: Any) -> None:
    for taint in config.taints:
        if not LABEL_KEY.fullmatch(taint.key) or not LABEL_VALUE.fullmatch(taint.value):
            raise invalid(f"Invalid taint '{taint.key}={taint.value}'.")
        if taint.effect == gke.NodeTaint.Effect.EFFECT_UNSPECIFIED:
            raise invalid(f"Taint '{taint.key}' needs an effect.")


def _check_management(pool: Any, settings: Settings) -> None:
    channel = settings.release_channel
    if channel != "UNSPECIFIED" and "management" in pool and not pool.management.auto_upgrade:
        raise invalid(f"Auto_upgrade must be true when release_channel {channel} is set.")


def _check_kubelet(config: Any) -> None:
    kubelet = config.kubelet_config
    grace, critical = kubelet.shutdown_grace_period_seconds, kubelet.shutdown_grace_period_critical_pods_seconds
    if (grace or critical) and not config.spot:
        raise invalid("shutdownGracePeriodSeconds is supported on Spot node pools alone.")
    if grace not in SHUTDOWN_SECONDS:
        raise invalid("shutdownGracePeriodSeconds must be 0, 30 or 120.")
    if critical < 0 or critical > grace:
        raise invalid("shutdownGracePeriodCriticalPodsSeconds must not be more than shutdownGracePeriodSeconds.")


def _check_autoscaling(pool: Any) -> None:
    scaling = pool.autoscaling
    per_zone = scaling.min_node_count or scaling.max_node_count
    total = scaling.total_min_node_count or scaling.total_max_node_count
    if per_zone and total:
        raise invalid("Node counts per zone and total node counts of autoscaling exclude each other.")
    if scaling.enabled and not (scaling.max_node_count or scaling.total_max_node_count):
        raise invalid("Autoscaling needs a maximum node count.")
    if scaling.min_node_count > scaling.max_node_count or scaling.total_min_node_count > scaling.total_max_node_count:
        raise invalid("Autoscaling's minimum node count is more than its maximum.")
