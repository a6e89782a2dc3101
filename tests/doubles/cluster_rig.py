# ruff: noqa: ASYNC110 - a real server is polled
"""A real kube-apiserver with what the operator needs around it: CRDs, rights, a simulated GKE, fake KubeRay and Ray heads."""

import asyncio
import contextlib
import json
import subprocess
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kubernetes.aio.client import ApiClient

from sim import tools
from sim.control_plane import ApiServer
from sim.control_plane.api_client import wait_until
from sim.gke import GkeServer, Settings
from tests.doubles.kuberay import KubeRay
from tests.doubles.node_objects import NodeObjects
from tests.doubles.ray_head import Head, RayServer, ray_node, ray_server
from torchtpu_operator.clients.kinds import CLASSES, JOBS, NODES, RAY_CLUSTERS, SLICES, Kind
from torchtpu_operator.clients.kube import Kube
from torchtpu_operator.clients.kube_config import load_configuration
from torchtpu_operator.clients.kube_errors import KubeError
from torchtpu_operator.controller.permissions import PERMISSIONS

CRDS = Path(__file__).parents[2] / "crds"
OPERATOR_NAMESPACE = "torchtpu-system"
ACCOUNT = "operator"

FAST = Settings(
    pending_seconds=0.05,
    create_seconds=0.3,
    node_seconds=0.1,
    create_lag_seconds=0.05,
    tpu_ready_seconds=0.1,
    delete_seconds=0.3,
)


class Api(Kube):
    """The administrator's client, which also writes what kubelets and other controllers write."""

    async def put_status(self, kind: Kind, name: str, status: Mapping[str, Any], namespace: str = "") -> None:
        await self._request(
            "PATCH",
            "status",
            kind,
            name=name,
            namespace=namespace or None,
            subresource="status",
            body={"status": dict(status)},
            content="application/merge-patch+json",
        )


def install_crds(server: ApiServer) -> None:
    """Ours, if they are not there yet."""
    _create(server, *sorted(CRDS.glob("*.yaml")))


def install_kuberay(server: ApiServer) -> None:
    _create(server, tools.kuberay_crds() / "ray.io_rayclusters.yaml")


def wait_served(server: ApiServer, *kinds: str) -> None:
    """Until kubectl finds these kinds (`plural.group`): a fresh one is not in discovery at once."""

    def is_served(kind: str) -> bool:
        try:
            server.kubectl("get", kind)
        except subprocess.CalledProcessError:
            return False
        return True

    for kind in kinds:
        wait_until(partial(is_served, kind), what=kind, seconds=60, check=lambda: None)


def _create(server: ApiServer, *files: Path) -> None:
    there = server.kubectl("get", "crd", "-o", "name").split()
    for file in files:
        group, _, plural = file.stem.partition("_")
        if f"customresourcedefinition.apiextensions.k8s.io/{plural}.{group}" not in there:
            server.kubectl("create", "-f", str(file))


def grant(server: ApiServer) -> Path:
    """A ServiceAccount with exactly the rights of the operator's own table; its kubeconfig."""
    if f"namespace/{OPERATOR_NAMESPACE}" not in server.kubectl("get", "namespace", "-o", "name").split():
        server.create_namespace(OPERATOR_NAMESPACE)
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": OPERATOR_NAMESPACE}
    objects: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": OPERATOR_NAMESPACE}}
    ]
    for own, role, binding in ((False, "ClusterRole", "ClusterRoleBinding"), (True, "Role", "RoleBinding")):
        place = {"namespace": OPERATOR_NAMESPACE} if own else {}
        rules = [
            {"apiGroups": [each.group], "resources": [each.resource], "verbs": list(each.verbs)}
            for each in PERMISSIONS
            if each.own_namespace is own
        ]
        api = "rbac.authorization.k8s.io"
        objects += [
            {"apiVersion": f"{api}/v1", "kind": role, "metadata": {"name": ACCOUNT, **place}, "rules": rules},
            {
                "apiVersion": f"{api}/v1",
                "kind": binding,
                "metadata": {"name": ACCOUNT, **place},
                "roleRef": {"apiGroup": api, "kind": role, "name": ACCOUNT},
                "subjects": [subject],
            },
        ]
    server.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return server.service_account_kubeconfig(OPERATOR_NAMESPACE, ACCOUNT)


@dataclass
class Rig:
    server: ApiServer
    api: Api
    gke: GkeServer
    gke_port: int
    ray: RayServer
    namespace: str
    kubeconfig: Path
    """With the operator's rights."""

    def environment(self, **changes: str) -> dict[str, str]:
        """The operator process's environment."""
        return {
            "TORCHTPU_GKE_PROJECT": "demo",
            "TORCHTPU_GKE_LOCATION": "us-east5",
            "TORCHTPU_GKE_CLUSTER": "bench",
            "TORCHTPU_GKE_ENDPOINT": f"127.0.0.1:{self.gke_port}",
            "TORCHTPU_GKE_INSECURE": "true",
            "TORCHTPU_RAY_BASE_URL": self.ray.base_url,
            "TORCHTPU_HEALTH_PORT": "0",
            "TORCHTPU_METRICS_PORT": "0",
            "POD_NAMESPACE": OPERATOR_NAMESPACE,
            **changes,
        }

    async def job(self, name: str) -> dict[str, Any]:
        """The live job."""
        job = await self.api.get(JOBS, name, namespace=self.namespace)
        assert job is not None, f"job {name} is gone"
        return job

    async def until_phase(self, name: str, phase: str, *, seconds: float = 150) -> dict[str, Any]:
        job: dict[str, Any] = {}
        try:
            async with asyncio.timeout(seconds):
                while (job := await self.job(name)).get("status", {}).get("phase") != phase:
                    await asyncio.sleep(0.05)
        except TimeoutError:
            status = job.get("status", {})
            raise AssertionError(f"not {phase}: {status.get('phase')}: {status.get('message')}") from None
        return job

    async def until_gone(self, *kinds: Kind, seconds: float = 150) -> None:
        """Until no object of these kinds is left."""
        async with asyncio.timeout(seconds):
            while any([await self.api.list(kind) for kind in kinds]):
                await asyncio.sleep(0.05)

    def head(self) -> Head:
        """The only Ray head that there is."""
        (head,) = self.ray.heads.values()
        return head

    def finish(self, status: str = "SUCCEEDED") -> None:
        """Every running Ray job ends."""
        for head in self.ray.heads.values():
            for name, job in head.jobs.items():
                if job["status"] in ("PENDING", "RUNNING"):
                    head.finish(name, status, driver_exit_code=0 if status == "SUCCEEDED" else 1)


@contextlib.asynccontextmanager
async def cluster_rig(
    server: ApiServer, *, namespace: str, kuberay: bool = True, settings: Settings = FAST
) -> AsyncIterator[Rig]:
    """Everything but the operator. Leaves no object of ours and no node behind."""
    install_crds(server)
    if kuberay:
        install_kuberay(server)
    kubeconfig = grant(server)
    server.create_namespace(namespace)
    configuration = await load_configuration(kubeconfig=str(server.kubeconfig))
    async with contextlib.AsyncExitStack() as stack:
        api = Api(await stack.enter_async_context(ApiClient(configuration)), field_manager="test")
        await until_served(api, JOBS, SLICES, CLASSES, *([RAY_CLUSTERS] if kuberay else []))
        ray = await stack.enter_async_context(ray_server())
        gke = GkeServer(NodeObjects(api, put_status=api.put_status), settings=settings)
        port = await gke.start()
        stack.push_async_callback(gke.stop)

        def appeared(cluster: Mapping[str, Any]) -> None:
            ray.heads[f"{cluster['metadata']['name']}-head-svc"] = head_of(cluster)

        double = KubeRay(api, put_status=api.put_status, appeared=appeared)
        running = asyncio.create_task(double.run(every=0.1))
        stack.callback(running.cancel)
        rig = Rig(server=server, api=api, gke=gke, gke_port=port, ray=ray, namespace=namespace, kubeconfig=kubeconfig)
        try:
            yield rig
        finally:
            await _remove_all(api)


async def until_served(api: Api, *kinds: Kind) -> None:
    """A fresh kind is not in discovery at once, and then answers 429 for a moment."""
    async with asyncio.timeout(30):
        for kind in kinds:
            while kind.plural not in await api.served(kind.group, kind.version):
                await asyncio.sleep(0.1)
            while True:
                with contextlib.suppress(KubeError):
                    await api.list(kind)
                    break
                await asyncio.sleep(0.1)


def head_of(cluster: Mapping[str, Any]) -> Head:
    """The Ray head of a cluster of v6e hosts with four chips each, as its worker groups describe it."""
    head = Head(first_status="RUNNING")
    for group in cluster["spec"]["workerGroupSpecs"]:
        container = next(c for c in group["template"]["spec"]["containers"] if c["name"] == "ray")
        name = next(variable["value"] for variable in container["env"] if variable["name"] == "TPU_NAME")
        hosts = int(group.get("numOfHosts") or 1)
        head.nodes += [
            ray_node(name, index, chips=4, pod_type=f"v6e-{hosts * 4}", topology="") for index in range(hosts)
        ]
    return head


async def _remove_all(api: Api) -> None:
    for kind in (JOBS, SLICES, CLASSES, NODES):
        for obj in await api.list(kind):
            meta = obj["metadata"]
            if meta.get("finalizers"):
                await api.merge(kind, meta["name"], {"metadata": {"finalizers": None}}, namespace=meta.get("namespace"))
            await api.delete(kind, meta["name"], uid=meta["uid"], namespace=meta.get("namespace"))
