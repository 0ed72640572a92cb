"""Ports through which every payload passes on its way out and in: sealed by the app's codec, kept apart where it is large."""

from durable.adapters.texts.ports import with_texts

__all__ = ["with_texts"]
