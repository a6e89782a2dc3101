"""A simulated GKE API: node pools that become nodes, operations that take time, refusals and faults as GKE has them."""

from sim.gke.cluster_manager import ClusterManager
from sim.gke.in_process import InProcessClusterManagerClient
from sim.gke.server import GkeServer
from sim.gke.settings import Reservation, Settings, realistic

__all__ = ["ClusterManager", "GkeServer", "InProcessClusterManagerClient", "Reservation", "Settings", "realistic"]
