"""The whole control plane of a bench, at its fixed addresses inside the bench's network namespace."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import urllib3

from sim.control_plane import kuberay, manifests, programs
from sim.control_plane.api_client import ApiClient, ApiError, wait_until
from sim.control_plane.api_server import LOOPBACK, build_core, request_account_kubeconfig
from sim.control_plane.daemon import Daemon, revive, stop
from sim.control_plane.identities import COREDNS_ACCOUNT, KUBERAY_ACCOUNT, Identities
from sim.control_plane.programs import SMALL_HEAP, Address
from sim.control_plane.seed import plant, read_seed, save_seed, seed_path
from sim.tools import cache_dir

API_ADDRESS = "10.96.0.1"
DNS_ADDRESS = "10.96.0.10"
API_URL = f"https://{API_ADDRESS}:443"

READY_SECONDS = 240.0
"""Until everything answers; eight are usual."""

KUBERAY_OPERATOR = "kuberay-operator"


class ControlPlane:
    """Owns the programs; needs `API_ADDRESS` and `DNS_ADDRESS` on an interface of the current network namespace.

    `start` blocks, and must run in a thread that lives as long as the programs shall.
    """

    def __init__(self, folder: Path, *, with_kuberay: bool = True, say: Callable[[str], None]) -> None:
        self._folder, self._with_kuberay, self._say = folder, with_kuberay, say
        self.identities = Identities(folder, url=API_URL, api_server_addresses=[API_ADDRESS, LOOPBACK])
        self.client = ApiClient(API_URL, ca=self.identities.ca.certificate, pair=self.identities.admin)
        self.daemons: list[Daemon] = []
        self._seed = seed_path(cache_dir())
        self.held_down: set[str] = set()
        """Programs that a fault keeps from being started again."""

    def start(self) -> None:
        """Returns when every program answers. Raises StartError or ApiError."""
        started = time.monotonic()
        etcd_address = Address(host=LOOPBACK, port=2379)
        etcd, api_server = build_core(
            self._folder,
            self.identities,
            # Not every address: the GKE API has port 443 on one of its own.
            listen=Address(host=API_ADDRESS, port=443),
            advertise=API_ADDRESS,
            etcd=etcd_address,
            etcd_peer=Address(host=LOOPBACK, port=2380),
        )
        self._start_daemon(etcd)
        if self._with_kuberay and (seed := read_seed(self._seed)):
            pair, ca = self.identities.etcd_client, self.identities.ca.certificate
            plant(seed, etcd, address=etcd_address, ca=ca, pair=pair)
        self._start_daemon(api_server)
        wait_until(self.client.is_ready, what="kube-apiserver", seconds=READY_SECONDS, check=self.check)
        self._say(f"kube-apiserver ready after {time.monotonic() - started:.1f} s")
        for daemon in self._controllers():
            self._start_daemon(daemon)
        objects = [*manifests.build_coredns_access(), *manifests.build_cloud_provider_access()]
        for each in (*objects, manifests.build_dns_service(DNS_ADDRESS)):
            self.client.apply(manifests.path_of(each), each)
        self._start_daemon(self._coredns())
        if self._with_kuberay:
            self.install_kuberay()
        for what, is_ready in self._probes().items():
            wait_until(is_ready, what=what, seconds=READY_SECONDS, check=self.check)
        self._say(f"control plane ready after {time.monotonic() - started:.1f} s")

    def install_kuberay(self) -> None:
        """Its kinds, rights and operator; returns when the operator answers. In the thread that called `start`."""
        if self.daemon(KUBERAY_OPERATOR) is not None:
            return
        crds = kuberay.read_crds()
        kuberay.grant_rights(self.client)
        if not kuberay.is_served(self.client, crds):
            self._say("installing KubeRay's kinds")
            kuberay.create_crds(self.client, crds)
            # Its operator waits five seconds more if it starts before its kinds are served.
            wait_until(
                lambda: kuberay.is_served(self.client, crds),
                what="the API of KubeRay",
                seconds=READY_SECONDS,
                check=self.check,
            )
            try:
                save_seed(self._seed, self.client, list(crds))
            except OSError as error:
                self._say(f"the next bench will take longer: cannot keep KubeRay's kinds in {self._seed}: {error}")
        self._start_daemon(self._kuberay_operator())
        url = f"http://{LOOPBACK}:8082/readyz"
        wait_until(lambda: self._answers(url), what=KUBERAY_OPERATOR, seconds=READY_SECONDS, check=self.check)

    def stop(self) -> None:
        stop(self.daemons)

    def check(self) -> None:
        """Raises StartError if a program ends again and again while the cluster comes up."""
        revive(self.daemons)

    def restart_dead(self) -> None:
        """Start again what has ended, unless it is held down. Call it in the thread that called `start`."""
        for daemon in self.daemons:
            if daemon.exit_code is not None and daemon.name not in self.held_down:
                self._say(f"{daemon.name} ended with {daemon.exit_code}; starting it again")
                daemon.start()

    def daemon(self, name: str) -> Daemon | None:
        return next((daemon for daemon in self.daemons if daemon.name == name), None)

    def service_account_kubeconfig(self, namespace: str, name: str, *, url: str | None = None) -> Path:
        """A kubeconfig with exactly the rights of a ServiceAccount that exists; `url` as seen from where it is used."""
        path = self._folder / "accounts" / f"{namespace}-{name}.kubeconfig"
        return request_account_kubeconfig(self.client, self.identities, path, namespace=namespace, name=name, url=url)

    def _start_daemon(self, daemon: Daemon) -> None:
        daemon.start()
        self.daemons.append(daemon)

    def _daemon(self, name: str, argv: Sequence[str | Path], env: dict[str, str] | None = None) -> Daemon:
        return Daemon(name, argv, log=self._folder / "logs" / f"{name}.log", env=SMALL_HEAP | (env or {}))

    def _controllers(self) -> list[Daemon]:
        controller_manager = programs.kube_controller_manager_argv(
            kubeconfig=self.identities.program_kubeconfig("kube-controller-manager", "system:kube-controller-manager"),
            ca=self.identities.ca,
            server=self.identities.api_server,
            service_account_key=self.identities.service_account_key,
            controllers=["*"],
            port=10257,
        )
        scheduler = programs.kube_scheduler_argv(
            kubeconfig=self.identities.program_kubeconfig("kube-scheduler", "system:kube-scheduler"),
            server=self.identities.api_server,
            port=10259,
        )
        return [
            self._daemon("kube-controller-manager", controller_manager),
            self._daemon("kube-scheduler", scheduler),
        ]

    def _coredns(self) -> Daemon:
        kubeconfig = self.identities.account_kubeconfig("coredns", *COREDNS_ACCOUNT)
        corefile = self._folder / "Corefile"
        corefile.write_text(programs.build_corefile(address=DNS_ADDRESS, kubeconfig=kubeconfig))
        return self._daemon("coredns", programs.coredns_argv(corefile=corefile))

    def _kuberay_operator(self) -> Daemon:
        kubeconfig = self.identities.account_kubeconfig(KUBERAY_OPERATOR, *KUBERAY_ACCOUNT)
        argv = programs.kuberay_argv(metrics=Address(host=LOOPBACK, port=8080), probe=Address(host=LOOPBACK, port=8082))
        return self._daemon(KUBERAY_OPERATOR, argv, {"KUBECONFIG": str(kubeconfig)})

    def _probes(self) -> dict[str, Callable[[], bool]]:
        return {
            "kube-controller-manager": lambda: self._answers(f"https://{LOOPBACK}:10257/healthz"),
            "kube-scheduler": lambda: self._answers(f"https://{LOOPBACK}:10259/healthz"),
            "coredns": lambda: self._answers(f"http://{DNS_ADDRESS}:8080/health"),
            "the default ServiceAccount": self._has_default_account,
        }

    def _has_default_account(self) -> bool:
        try:
            self.client.get("/api/v1/namespaces/default/serviceaccounts/default")
        except ApiError as error:
            if error.status != 404:
                raise
            return False
        return True

    def _answers(self, url: str) -> bool:
        with urllib3.PoolManager(ca_certs=str(self.identities.ca.certificate)) as pool:
            try:
                return pool.request("GET", url, timeout=1.0, retries=False).status == 200
            except urllib3.exceptions.HTTPError:
                return False
