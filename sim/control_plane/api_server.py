"""etcd and kube-apiserver alone, on loopback ports: the real API for tests, ready in about four seconds."""

import os
import socket
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from sim import tools
from sim.control_plane import programs
from sim.control_plane.api_client import ApiClient, ApiError, wait_until
from sim.control_plane.daemon import Daemon, StartError, revive, stop
from sim.control_plane.identities import Identities
from sim.control_plane.kubeconfig import build_kubeconfig, token_user, write_kubeconfig
from sim.control_plane.manifests import build_namespace, build_service_account, path_of
from sim.control_plane.programs import SMALL_HEAP, Address

LOOPBACK = "127.0.0.1"

READY_SECONDS = 180.0
"""Four are usual; a loaded machine gets time."""

_ATTEMPTS = 3
"""Another program may take a free port between its choice and its use."""


class ApiServer:
    """A context manager. Everything lies in `folder`, which must be empty or absent.

    No node, scheduler or kubelet: pods are accepted and stay Pending. `controllers` names controllers of
    kube-controller-manager to run besides, for example `namespace-controller` and `garbage-collector-controller`.
    `program` is another build of kube-apiserver than the bench's own.
    Start it in the main thread: its programs die with the thread that started them.
    """

    def __init__(self, folder: Path, *, controllers: Sequence[str] = (), program: Path | None = None) -> None:
        self._folder, self._controllers, self._program = folder, tuple(controllers), program
        self._daemons: list[Daemon] = []
        self.url = ""
        self.kubeconfig = folder / "kubeconfig"
        """The administrator's."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Returns when the API answers and the namespace `default` takes pods. Raises StartError."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                with ExitStack() as undo:
                    undo.callback(self.stop)
                    self._start(self._folder / f"attempt-{attempt}")
                    undo.pop_all()
                return
            except StartError as error:
                if "address already in use" not in str(error) or attempt == _ATTEMPTS:
                    raise

    def stop(self) -> None:
        stop(self._daemons)
        self._daemons.clear()

    def kubectl(self, *arguments: str, input: str | None = None) -> str:
        """kubectl's output, as the administrator. Raises CalledProcessError with its stderr."""
        return run_kubectl(self.kubeconfig, *arguments, input=input)

    def create_namespace(self, name: str) -> None:
        """With the `default` ServiceAccount, without which admission refuses every pod."""
        self._client.apply(path_of(build_namespace(name)), build_namespace(name))
        self._apply_default_account(name)

    def service_account_kubeconfig(self, namespace: str, name: str) -> Path:
        """A kubeconfig with exactly the rights of a ServiceAccount that exists."""
        path = self._folder / "accounts" / f"{namespace}-{name}.kubeconfig"
        return request_account_kubeconfig(self._client, self._identities, path, namespace=namespace, name=name)

    def _start(self, folder: Path) -> None:
        etcd, etcd_peer, api = (Address(host=LOOPBACK, port=port) for port in free_ports(3))
        self.url = f"https://{api}"
        self._identities = Identities(folder, url=self.url, api_server_addresses=[LOOPBACK])
        self._client = ApiClient(self.url, ca=self._identities.ca.certificate, pair=self._identities.admin)
        self._daemons = build_core(
            folder,
            self._identities,
            listen=api,
            advertise=None,
            etcd=etcd,
            etcd_peer=etcd_peer,
            program=self._program,
        )
        if self._controllers:
            self._daemons.append(self._controller_manager(folder))
        for daemon in self._daemons:
            daemon.start()
        wait_until(self._client.is_ready, what="kube-apiserver", seconds=READY_SECONDS, check=self._check)
        wait_until(self._has_default, what="namespace default", seconds=READY_SECONDS, check=self._check)
        self._apply_default_account("default")
        self._identities.admin_kubeconfig(self.kubeconfig)

    def _controller_manager(self, folder: Path) -> Daemon:
        argv = programs.kube_controller_manager_argv(
            kubeconfig=self._identities.program_kubeconfig("kube-controller-manager", "system:kube-controller-manager"),
            ca=self._identities.ca,
            server=self._identities.api_server,
            service_account_key=self._identities.service_account_key,
            controllers=self._controllers,
            port=0,
        )
        name = "kube-controller-manager"
        return Daemon(name, argv, log=folder / "logs" / f"{name}.log", env=SMALL_HEAP)

    def _check(self) -> None:
        revive(self._daemons)

    def _has_default(self) -> bool:
        try:
            self._client.get("/api/v1/namespaces/default")
        except ApiError as error:
            if error.status != 404:
                raise
            return False
        return True

    def _apply_default_account(self, namespace: str) -> None:
        account = build_service_account(namespace, "default")
        self._client.apply(path_of(account), account)


def build_core(
    folder: Path,
    identities: Identities,
    *,
    listen: Address,
    advertise: str | None,
    etcd: Address,
    etcd_peer: Address,
    program: Path | None = None,
) -> list[Daemon]:
    """etcd and kube-apiserver, not started; they may be started at once, since the apiserver waits for etcd."""
    etcd_argv = programs.etcd_argv(
        data=folder / "etcd", client=etcd, peer=etcd_peer, pair=identities.etcd, ca=identities.ca.certificate
    )
    api_server_argv = programs.kube_apiserver_argv(
        listen=listen,
        advertise=advertise,
        etcd=etcd,
        server=identities.api_server,
        etcd_client=identities.etcd_client,
        kubelet_client=identities.kubelet_client,
        ca=identities.ca.certificate,
        service_account_key=identities.service_account_key,
        program=program,
    )
    logs = folder / "logs"
    return [
        Daemon("etcd", etcd_argv, log=logs / "etcd.log", env=SMALL_HEAP),
        Daemon("kube-apiserver", api_server_argv, log=logs / "kube-apiserver.log"),
    ]


def request_account_kubeconfig(
    client: ApiClient, identities: Identities, path: Path, *, namespace: str, name: str, url: str | None = None
) -> Path:
    """A kubeconfig with a token of that ServiceAccount, good for a day. Raises ApiError, 404 if there is none."""
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 86400},
    }
    answer = client.create(f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", request)
    config = build_kubeconfig(
        server=url or identities.url,
        ca=identities.ca.certificate.read_bytes(),
        user=token_user(answer["status"]["token"]),
        namespace=namespace,
    )
    return write_kubeconfig(path, config)


def run_kubectl(kubeconfig: Path, *arguments: str, input: str | None = None) -> str:
    """kubectl's output. Raises CalledProcessError with its stderr as a note."""
    done = subprocess.run(
        [tools.path("kubectl"), f"--kubeconfig={kubeconfig}", *arguments],
        input=input,
        capture_output=True,
        text=True,
        check=False,
        # The discovery cache would go to $HOME otherwise, and outlive the cluster.
        env={**os.environ, "KUBECACHEDIR": str(kubeconfig.parent / "kubectl")},
    )
    if done.returncode != 0:
        error = subprocess.CalledProcessError(done.returncode, ["kubectl", *arguments], done.stdout, done.stderr)
        error.add_note(done.stderr)
        raise error
    return done.stdout


def free_ports(count: int) -> list[int]:
    """Loopback ports that were free a moment ago, all different."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((LOOPBACK, 0))
        return [each.getsockname()[1] for each in sockets]
