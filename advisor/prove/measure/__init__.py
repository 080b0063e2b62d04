"""Measures the whole script without and with a change: alternating runs or turns, their windows and what they show."""
