"""For users' own Python: build, read, check and write jobs and classes, without a cluster.

`from torchtpu_operator import TorchTPUJob`. Pure: it imports no Kubernetes client, no kopf, no Ray.
"""
