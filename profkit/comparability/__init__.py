"""What must be alike for two runs to be compared: the fields as data, a run's fingerprint, and how two differ."""

from profkit.comparability.differences import differences as differences
from profkit.comparability.fields import Field as Field
from profkit.comparability.fields import all_fields as all_fields
from profkit.comparability.fingerprint import fingerprint_of as fingerprint_of
