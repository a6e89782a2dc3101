"""The NodePool and Cluster as GKE stores and returns them: the request, with what GKE fills in."""

from collections.abc import Iterable
from typing import Any

from google.cloud import container_v1 as gke

from sim.gke.settings import Settings
from sim.gke.tpu_rules import Shape

DEFAULT_SCOPES = (
    "https://www.googleapis.com/auth/devstorage.read_only",
    "https://www.googleapis.com/auth/logging.write",
    "https://www.googleapis.com/auth/monitoring",
)
DEFAULT_DISK_GB = 100
DEFAULT_MAX_PODS = 110


def build_stored_pool(pool: Any, shape: Shape, *, settings: Settings, etag: str) -> Any:
    """A copy of the requested pool with GKE's defaults. What was asked for stays; a naive comparison still fails."""
    stored = gke.NodePool(pool)
    stored.status = gke.NodePool.Status.PROVISIONING
    stored.locations = list(shape.zones)
    stored.self_link = settings.link(settings.pool_path(pool.name))
    stored.version = settings.version
    stored.etag = etag
    stored.pod_ipv4_cidr_size = 24
    if "management" not in pool:
        stored.management = gke.NodeManagement(auto_upgrade=True, auto_repair=True)
    if "max_pods_constraint" not in pool:
        stored.max_pods_constraint = gke.MaxPodsConstraint(max_pods_per_node=DEFAULT_MAX_PODS)
    settings_of_upgrade = stored.upgrade_settings
    if not settings_of_upgrade.strategy:
        settings_of_upgrade.strategy = gke.NodePoolUpdateStrategy.SURGE
        if not settings_of_upgrade.max_unavailable:
            settings_of_upgrade.max_surge = settings_of_upgrade.max_surge or 1
    _fill_config(stored.config, shape)
    return stored


def _fill_config(config: Any, shape: Shape) -> None:
    config.machine_type = shape.machine_type
    config.image_type = config.image_type or "COS_CONTAINERD"
    config.service_account = config.service_account or "default"
    if not config.oauth_scopes:
        config.oauth_scopes = list(DEFAULT_SCOPES)
    generation = shape.machine.generation if shape.machine is not None else None
    default_disk = "pd-balanced"
    if generation is not None and default_disk not in generation.boot_disk_types:
        default_disk = generation.boot_disk_types[-1]
    kind = config.boot_disk.disk_type or config.disk_type or default_disk
    size = config.boot_disk.size_gb or config.disk_size_gb or DEFAULT_DISK_GB
    config.boot_disk.disk_type = config.disk_type = kind
    config.boot_disk.size_gb = config.disk_size_gb = size
    config.metadata = dict(config.metadata) | {"disable-legacy-endpoints": "true"}


def build_cluster(pools: Iterable[Any], *, settings: Settings, nodes: int) -> Any:
    return gke.Cluster(
        name=settings.cluster,
        id="bench" + "0" * 59,
        location=settings.location,
        zone=settings.location,
        locations=list(settings.zones),
        status=gke.Cluster.Status.RUNNING,
        endpoint="10.96.0.1",
        initial_cluster_version=settings.version,
        current_master_version=settings.version,
        current_node_version=settings.version,
        current_node_count=nodes,
        self_link=settings.link(settings.cluster_path),
        release_channel=gke.ReleaseChannel(channel=gke.ReleaseChannel.Channel[settings.release_channel]),
        workload_identity_config=gke.WorkloadIdentityConfig(workload_pool=f"{settings.project}.svc.id.goog"),
        # KubeRay and the TPU webhook are not GKE's add-on here.
        addons_config=gke.AddonsConfig(ray_operator_config=gke.RayOperatorConfig(enabled=False)),
        node_pools=[gke.NodePool(pool) for pool in pools],
    )
