"""Tests against a real kube-apiserver; a package, so that its server ends with the last of them."""
