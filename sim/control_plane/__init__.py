"""A real control plane: etcd, kube-apiserver, its controllers and scheduler, CoreDNS, KubeRay's operator."""

from sim.control_plane.api_client import ApiError
from sim.control_plane.api_server import ApiServer
from sim.control_plane.daemon import StartError

__all__ = ["ApiError", "ApiServer", "StartError"]
