"""What all tests share: a cache of their own, and quiet upstream libraries."""

import logging

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """Keep every test out of the user's cache, and out of the cache of other tests."""
    monkeypatch.setenv("ETGRAPH_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(autouse=True)
def quiet_upstream():
    """Upstream logs warnings on every lowering; a test that wants them asks for caplog at a level."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)
