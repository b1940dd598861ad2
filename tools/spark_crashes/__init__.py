"""Streaming queries whose driver is killed at every stage, and what became of the events."""
