"""The cache of artifacts: `joblib.Memory` in front, verified entries and content-addressed blobs on disk.

`settings` says where and how large, `directory` keeps it private and whole, `blobs` and `entry_file` are the
two forms of file, `entries` finds and publishes, `sweep` keeps it within its limit, `records` holds small
notes, `backend` is the door for joblib, and `cache` is what others use.
"""

from etgraph.store.blobs import Buffer
from etgraph.store.cache import Cache
from etgraph.store.entry import Entry
from etgraph.store.settings import parse_size
from etgraph.store.sweep import PruneReport, VerifyReport

__all__ = ["Buffer", "Cache", "Entry", "PruneReport", "VerifyReport", "parse_size"]
