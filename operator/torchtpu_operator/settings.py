"""The operator's settings: one typed object, built from the environment once, in `__main__`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from torchtpu_operator.clients.gke import GkeCluster
from torchtpu_operator.clients.ray_jobs import DEFAULT_BASE_URL

_TRUE, _FALSE = {"1", "true", "yes"}, {"", "0", "false", "no"}
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


class SettingsError(Exception):
    """Settings that cannot be used; the message has one line per problem, each with the variable's name."""


@dataclass(frozen=True, kw_only=True)
class OperatorSettings:
    gke: GkeCluster
    """TORCHTPU_GKE_PROJECT, _LOCATION, _CLUSTER: the cluster that node pools are made in, required.
    TORCHTPU_GKE_ENDPOINT: another host[:port] for the GKE API. TORCHTPU_GKE_INSECURE=true: plain text, no credentials;
    needs the endpoint."""
    namespace: str
    """POD_NAMESPACE: the operator's own namespace, where its Lease is; part of the installation's identity."""
    identity: str
    """POD_NAME: this replica's name in the Lease."""
    log_level: str = "INFO"
    """TORCHTPU_LOG_LEVEL: DEBUG, INFO, WARNING or ERROR."""
    health_port: int = 8080
    """TORCHTPU_HEALTH_PORT: /healthz and /readyz; 0 picks a free one."""
    metrics_port: int = 8081
    """TORCHTPU_METRICS_PORT: /metrics; may be the health port; 0 picks a free one."""
    workers: int = 64
    """TORCHTPU_WORKERS: reconciles at a time. They are cheap; a Ray head that does not answer holds one for 5 s."""
    resync_seconds: float = 300.0
    """TORCHTPU_RESYNC_SECONDS: everything is listed and looked at again so often: the net under the watches."""
    ray_base_url: str = field(default=DEFAULT_BASE_URL)
    """TORCHTPU_RAY_BASE_URL: template with {head_service}, {namespace} and {port}; for an operator outside the cluster."""
    kubeconfig: str | None = None
    """Flag --kubeconfig, never an environment variable: a stray file must not redirect an operator."""

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str], *, hostname: str, kubeconfig: str | None = None
    ) -> "OperatorSettings":
        """Raises SettingsError. `hostname` names the replica where POD_NAME is unset."""
        read = _Reader(environment)
        gke = GkeCluster(
            project=read.required("TORCHTPU_GKE_PROJECT"),
            location=read.required("TORCHTPU_GKE_LOCATION"),
            cluster=read.required("TORCHTPU_GKE_CLUSTER"),
            endpoint=environment.get("TORCHTPU_GKE_ENDPOINT", "").strip(),
            insecure=read.flag("TORCHTPU_GKE_INSECURE"),
        )
        if gke.insecure and not gke.endpoint:
            read.problems.append("TORCHTPU_GKE_INSECURE needs TORCHTPU_GKE_ENDPOINT: Google's own API is TLS only")
        settings = cls(
            gke=gke,
            namespace=environment.get("POD_NAMESPACE") or "torchtpu-system",
            identity=environment.get("POD_NAME") or hostname,
            log_level=read.choice("TORCHTPU_LOG_LEVEL", "INFO", _LEVELS),
            health_port=read.number("TORCHTPU_HEALTH_PORT", 8080, low=0, high=65535),
            metrics_port=read.number("TORCHTPU_METRICS_PORT", 8081, low=0, high=65535),
            workers=read.number("TORCHTPU_WORKERS", 64, low=1, high=512),
            resync_seconds=float(read.number("TORCHTPU_RESYNC_SECONDS", 300, low=10, high=3600)),
            ray_base_url=environment.get("TORCHTPU_RAY_BASE_URL") or DEFAULT_BASE_URL,
            kubeconfig=kubeconfig,
        )
        read.check_template("TORCHTPU_RAY_BASE_URL", settings.ray_base_url)
        if read.problems:
            raise SettingsError("\n".join(read.problems))
        return settings


class _Reader:
    """Reads variables and collects what is wrong, so that one start names everything."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.problems: list[str] = []

    def required(self, name: str) -> str:
        value = self._environment.get(name, "").strip()
        if not value:
            self.problems.append(f"{name} is not set: the chart's gke.project, gke.location and gke.cluster give it")
        return value

    def flag(self, name: str) -> bool:
        value = self._environment.get(name, "").strip().lower()
        if value not in _TRUE | _FALSE:
            self.problems.append(f"{name}={value!r} is neither true nor false")
        return value in _TRUE

    def choice(self, name: str, default: str, choices: tuple[str, ...]) -> str:
        value = (self._environment.get(name) or default).upper()
        if value not in choices:
            self.problems.append(f"{name}={value!r} is none of {', '.join(choices)}")
        return value

    def number(self, name: str, default: int, *, low: int, high: int) -> int:
        text = self._environment.get(name) or str(default)
        if not text.isdigit() or not low <= int(text) <= high:
            self.problems.append(f"{name}={text!r} is not a whole number from {low} to {high}")
            return default
        return int(text)

    def check_template(self, name: str, template: str) -> None:
        try:
            template.format(head_service="head", namespace="ns", port=8265)
        except (KeyError, IndexError, ValueError) as error:
            self.problems.append(
                f"{name}={template!r} is no template of {{head_service}}, {{namespace}} and {{port}}: {error!r}"
            )
