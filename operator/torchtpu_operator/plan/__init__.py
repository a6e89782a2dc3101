"""Decisions: state in, status and actions out. Pure: no clients, no clock, no chance."""
