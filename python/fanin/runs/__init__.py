"""The run layer: what is simulated (jobs), where (executors), and what is kept (stores).

A job is plain data: it can be pickled, sent to another machine, and hashed. An executor runs jobs and knows nothing of what they are. A
store keeps their frames under the job's key. ``run``, ``compare``, ``reproduce`` and ``sweep`` are views of this layer.
"""

from __future__ import annotations

from fanin.runs.executor import Executor, Threads
from fanin.runs.job import Document, Job, RunWarning, engine_digest
from fanin.runs.store import Store
from fanin.runs.tables import FRAMES, Frames

__all__ = ["FRAMES", "Document", "Executor", "Frames", "Job", "RunWarning", "Store", "Threads", "engine_digest"]
