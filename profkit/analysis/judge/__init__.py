"""The judge: evaluates targets and rules on a run. `run.py` has the order of its steps.

A target compares one value with a threshold (`target_checks.py`, `target.py`, `verdicts.py`, `kernels.py`); a rule
states what to change at a place (`rule.py`, `rules/`); `findings.py` orders the findings of the rules by how much they
could save.
"""
