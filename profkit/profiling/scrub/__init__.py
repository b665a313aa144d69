"""Copies to show around: a report or a run goes in, the same without host, user and secrets comes out."""

from profkit.profiling.scrub.story import LeftOut as LeftOut
from profkit.profiling.scrub.story import Scrubbed as Scrubbed
from profkit.profiling.scrub.story import scrub as scrub
