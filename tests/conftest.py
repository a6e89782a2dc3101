"""Options and fixtures of every ring."""

import pytest

from sim.testing import api_server  # noqa: F401 - one real apiserver for the whole run


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden", action="store_true", help="rewrite the golden files instead of comparing with them")


@pytest.fixture
def rewrite_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be written anew (`make golden`)."""
    return bool(request.config.getoption("--golden"))
