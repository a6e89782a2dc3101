"""Options and fixtures of every ring."""

import hypothesis
import pytest

from sim.testing import api_server  # noqa: F401

# Time is no property of what is tested; the same examples in every run, so that a failure is the change's own.
hypothesis.settings.register_profile("suite", deadline=None, derandomize=True)
hypothesis.settings.load_profile("suite")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden", action="store_true", help="rewrite the golden files instead of comparing with them")
    parser.addoption("--kubernetes", action="append", metavar="MINOR", help="test the CRDs on this minor (repeatable)")


@pytest.fixture
def rewrite_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be written anew (`make golden`)."""
    return bool(request.config.getoption("--golden"))
