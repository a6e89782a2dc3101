"""`torchtpu`, also `kubectl torchtpu`."""
