"""The judge: targets and rules, and what they say of a run. `run.py` has the order in which they are asked.

A target holds one value against a threshold (`checks.py`, `target.py`, `verdicts.py`, `kernels.py`); a rule says what
to change at a place (`rule.py`, `rules/`); `findings.py` orders what rules found by what can be won.
"""
