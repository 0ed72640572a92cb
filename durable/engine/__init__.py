"""The engine: takes turns, one replay of a run inside one invocation."""
