"""The outside world behind small classes: the Kubernetes API, GKE, the Ray dashboard and the clock.

Every call has a time limit and one error vocabulary; nothing here decides anything and nothing retries by itself:
the work queue and the planners do. No client connects on import.
"""
