"""The store: runs over time in one SQLite file; reports of other benchmark tools into it, tables out of it."""

from profkit.history.entry import entry_of as entry_of
from profkit.history.entry import run_id as run_id
from profkit.history.file import default_path as default_path
from profkit.history.store import History as History
from profkit.history.store import open_history as open_history
