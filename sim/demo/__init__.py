"""`sim demo`: a TorchTPUJob from apply to the last node pool's end, for people to watch and for CI to believe."""
