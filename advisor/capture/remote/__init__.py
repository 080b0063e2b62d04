"""Collects profiles of running jobs over gRPC."""
