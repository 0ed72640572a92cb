"""The test kit: a whole deployment in memory with virtual time, faults on demand, and a crash matrix."""

from durable.testing.crash_matrix import CrashMatrix
from durable.testing.environment import TestEnvironment
from durable.testing.faults import Faults, InvocationKilled
from durable.testing.mocks import Mock
from durable.testing.replaying import ReplayFailed, assert_replays
from durable.testing.steps import kill_process

__all__ = [
    "CrashMatrix",
    "Faults",
    "InvocationKilled",
    "Mock",
    "ReplayFailed",
    "TestEnvironment",
    "assert_replays",
    "kill_process",
]
