"""Tests of `advisor.sandbox`."""
