"""How to reach the Kubernetes API: the pod's own account, or a kubeconfig that was named explicitly."""

from kubernetes.aio.client import Configuration
from kubernetes.aio.config import load_incluster_config, load_kube_config

_CONNECTIONS = 64


async def load_configuration(*, kubeconfig: str | None = None) -> Configuration:
    """The package's own `load_config` would prefer any kubeconfig that happens to lie around; this never does."""
    configuration = Configuration()
    if kubeconfig is None:
        load_incluster_config(client_configuration=configuration)
    else:
        await load_kube_config(config_file=kubeconfig, client_configuration=configuration, persist_config=False)
    configuration.connection_pool_maxsize = _CONNECTIONS
    return configuration
