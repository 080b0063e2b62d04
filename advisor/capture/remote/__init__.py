"""Sampling of running jobs over gRPC."""
