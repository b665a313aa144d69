"""What must be alike for two runs to be compared: the fields as data, a run's fingerprint, and how two differ."""

from profkit.analysis.comparability.fingerprint import ComparedField as ComparedField
from profkit.analysis.comparability.fingerprint import all_fields as all_fields
from profkit.analysis.comparability.fingerprint import fingerprint_differences as fingerprint_differences
from profkit.analysis.comparability.fingerprint import fingerprint_id as fingerprint_id
from profkit.analysis.comparability.fingerprint import fingerprint_of as fingerprint_of
