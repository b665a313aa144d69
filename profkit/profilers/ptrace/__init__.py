"""Looks at the registers of a running program of machine code, by ptrace of Linux on x86-64."""
