"""Stand-in for torch_tpu on hosts without TPUs: device "tpu" computes on the CPU, backend "tpu_dist" talks gloo.

What it does not forgive is a wrong launch environment: see launch_env.py. Found by PYTHONPATH, and by `import torch`
through the same entry point that the real package has.
"""

from torch_tpu import _loader as _loader

_loader.load()
