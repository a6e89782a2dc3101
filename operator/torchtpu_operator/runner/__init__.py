"""What runs inside the Ray job: reserve the slices, rank the workers, run the entrypoint.

The same files are importable as `torchtpu_operator.runner` (operator image, tests) and, lying flat in one folder that
an immutable ConfigMap fills, as `torchtpu_runner` (Ray pods). So: relative imports only, no subpackages, nothing but
the standard library and ray.
"""
