"""Tests on the bench; a package, so that the shared bench ends with the last of them."""
