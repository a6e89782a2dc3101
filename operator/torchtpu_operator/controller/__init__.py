"""The shell of the operator: watches, the work queue, observers, the executor of actions, events, metrics, the lease."""
