"""The store of runs over time in one SQLite file, and tables made from it."""

from profkit.regression.history.file import default_path as default_path
from profkit.regression.history.rows import entry_of as entry_of
from profkit.regression.history.rows import run_id as run_id
from profkit.regression.history.store import History as History
from profkit.regression.history.store import HistoryFilter as HistoryFilter
from profkit.regression.history.store import open_history as open_history
