# SPDX-License-Identifier: Apache-2.0
"""Chokepoint: what holds a training cluster back, worked out for one job on one wiring.

>>> import chokepoint as cp
>>> job = cp.Job(model="llama-3-8b", cluster="dgx-h100", hosts=8, batch=256, sequence=8192)
>>> best = cp.plan(job).candidates[0]
>>> best.strategy, best.step_time_s                                  # doctest: +SKIP
>>> cp.whatif(job, changes=["nic=x2"]).answers[0].replanned.prediction.step_time_s   # doctest: +SKIP

Every function takes the long options of the command of the same name as keywords, with underscores for dashes, and gives
what that command prints with --json as plain objects: attributes for keys, lists for arrays, dict() and frame() on each.
Units are in the names: _s seconds, _bytes, _bytes_per_s, _usd. docs/formats/json.md describes every key.
"""
from __future__ import annotations

import json as _json
import os as _os
from typing import Any, Dict, Iterable, Mapping, Optional, Tuple, Union

from . import _chokepoint
from ._results import (Catalogue, Diagnosis, Plan, Prediction, Result, Settings, Validation, WhatIf, Wiring, as_result)

__version__ = _chokepoint.__version__
__all__ = ["Catalogue", "Diagnosis", "Error", "Job", "Plan", "Prediction", "Result", "Settings", "Validation", "WhatIf",
           "Wiring", "accelerators", "clusters", "diagnose", "export", "models", "plan", "predict", "validate", "whatif",
           "wiring", "__version__"]

_Path = Union[str, "_os.PathLike[str]"]


class Error(ValueError):
    """What a user can mend: a wrong name, value or file. `file`, `line`, `column`, `expected` and `fix` say where and how."""

    def __init__(self, message: str, file: Optional[str] = None, line: Optional[int] = None, column: Optional[int] = None,
                 expected: Optional[str] = None, fix: Optional[str] = None) -> None:
        place = ":".join(str(part) for part in (file, line, column) if part is not None)
        text = f"{place}: {message}" if place else message
        super().__init__(text + (f"\n  {fix}" if fix else ""))
        self.message, self.file, self.line, self.column = message, file, line, column
        self.expected, self.fix = expected, fix


class InternalError(RuntimeError):
    """A fault of Chokepoint itself."""


class Job:
    """A training job: what a job file says (docs/formats/job.md), as keywords.

    >>> job = Job(model="llama-3-8b", cluster="dgx-a100", batch=64, sequence=4096)
    >>> job.replace(batch=128).batch
    128

    `cluster` is a name of the catalogue, a cluster file, or what `nvidia-smi topo -m` printed (a path).
    """

    def __init__(self, **values: Any) -> None:
        self._values: Dict[str, Any] = {key: value for key, value in values.items() if value is not None}
        self._file: Optional[str] = None

    @classmethod
    def from_file(cls, path: _Path, **values: Any) -> "Job":
        """A job file, or a framework's own configuration or launch script; keywords replace what it says."""
        job = cls(**values)
        job._file = _os.fspath(path)
        return job

    def replace(self, **values: Any) -> "Job":
        """The same job with other values."""
        job = Job(**{**self._values, **values})
        job._file = self._file
        return job

    def to_dict(self) -> Dict[str, Any]:
        return dict(self._values)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(f"the job says nothing of '{name}'") from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and (self._values, self._file) == (other._values, other._file)

    def __repr__(self) -> str:
        said = [repr(self._file)] if self._file else []
        said += [f"{key}={value!r}" for key, value in self._values.items()]
        return f"Job({', '.join(said)})"


_JobLike = Union[Job, Mapping[str, Any], _Path]


def _request(job: Optional[_JobLike], inputs: Optional[Iterable[_Path]], files: Optional[Mapping[str, Union[str, bytes]]],
             options: Mapping[str, Any]) -> Dict[str, Any]:
    request: Dict[str, Any] = {}
    given = {key.replace("_", "-"): value for key, value in options.items() if value is not None and value is not False}
    if isinstance(job, Job) and job._file is not None:
        request["job"] = job._file
        given = {**{key.replace("_", "-"): value for key, value in job._values.items()}, **given}
    elif isinstance(job, Job):
        request["job"] = dict(job._values)
    elif isinstance(job, Mapping):
        request["job"] = dict(job)
    elif job is not None:
        request["job"] = _os.fspath(job)
    if inputs is not None:
        request["inputs"] = [_os.fspath(one) for one in inputs]
    if files:
        import base64
        request["files"] = {name: content if isinstance(content, str) else
                            {"base64": base64.b64encode(content).decode("ascii")} for name, content in files.items()}
    for key, value in given.items():
        if isinstance(value, (list, tuple)):
            given[key] = [_os.fspath(one) if hasattr(one, "__fspath__") else one for one in value]
        elif hasattr(value, "__fspath__"):
            given[key] = _os.fspath(value)
    if given:
        request["options"] = given
    return request


def _call(operation: str, request: Mapping[str, Any]) -> Tuple[Dict[str, Any], int]:
    text, code = _chokepoint.answer(operation, _json.dumps(request))
    data = _json.loads(text)
    error = data.get("error") if isinstance(data, dict) else None
    if code == 3:
        raise InternalError(error["message"] if error else text)
    if code == 2 or (isinstance(error, dict) and "message" in error):
        raise Error(**{key: error.get(key) for key in ("message", "file", "line", "column", "expected", "fix")})
    return data, code


def predict(job: _JobLike, strategy: Union[None, str, Mapping[str, Any]] = None, *,
            files: Optional[Mapping[str, Union[str, bytes]]] = None, **options: Any) -> Prediction:
    """One strategy of a job: step time, bill, ladder, memory, choke points.

    `strategy` is text ("tensor=8 zero=1 microbatch=1") or a mapping; None takes the job's own. A job that does not fit gives
    a result too, with `code` 1.
    """
    data, code = _call("predict", _request(job, None, files, {"strategy": strategy, **options}))
    return Prediction(data, code)


def plan(job: _JobLike, *, top: Optional[int] = None, files: Optional[Mapping[str, Union[str, bytes]]] = None,
         **options: Any) -> Plan:
    """All strategies of a job, best first; `code` is 1 where nothing fits."""
    data, code = _call("plan", _request(job, None, files, {"top": top, **options}))
    return Plan(data, code)


def whatif(job: _JobLike, changes: Union[str, Iterable[str]] = (), *, strategy: Union[None, str, Mapping[str, Any]] = None,
           traces: Iterable[_Path] = (), files: Optional[Mapping[str, Union[str, bytes]]] = None,
           **options: Any) -> WhatIf:
    """What changes are worth: step time, money; sensitivities, scale, break-even.

    `changes` are words of docs/formats/whatif.md ("nic=400 Gb/s"); several are one combination, `each=True` answers each on
    its own too. `traces` of the job's ranks make its measured costs the starting point.
    """
    wanted = [changes] if isinstance(changes, str) else list(changes)
    traces = list(traces)
    asked = {"change": wanted or None, "strategy": strategy, "from_trace": traces or None, **options}
    data, code = _call("whatif", _request(job, None, files, asked))
    return WhatIf(data, code)


def wiring(*inputs: _Path, job: Optional[_JobLike] = None, files: Optional[Mapping[str, Union[str, bytes]]] = None,
           **options: Any) -> Wiring:
    """A host or cluster out of what its tools printed, cluster files or catalogue names: hosts, fabric, findings."""
    data, code = _call("wiring", _request(job, inputs or None, files, options))
    return Wiring(data, code)


def diagnose(*inputs: _Path, files: Optional[Mapping[str, Union[str, bytes]]] = None, **options: Any) -> Diagnosis:
    """Traces of one job's ranks, its flight recorder dumps, a timeline or a trainer's log: bill, causes, choke point."""
    data, code = _call("diagnose", _request(None, inputs or None, files, options))
    return Diagnosis(data, code)


def export(job: _JobLike, to: str, *, strategy: Union[None, str, Mapping[str, Any]] = None,
           files: Optional[Mapping[str, Union[str, bytes]]] = None, **options: Any) -> Settings:
    """A strategy in a framework's own settings: megatron, deepspeed, torchtitan, accelerate, nemo, hostfile or rankmap."""
    data, code = _call("export", _request(job, None, files, {"to": to, "strategy": strategy, **options}))
    return Settings(data, code)


def validate(*inputs: _Path, files: Optional[Mapping[str, Union[str, bytes]]] = None, **options: Any) -> Validation:
    """Predictions against published or own measurements (CSV): rows with their errors, and sums by source."""
    data, code = _call("validate", _request(None, inputs or None, files, options))
    return Validation(data, code)


def models() -> Catalogue:
    """Models of the catalogue."""
    return Catalogue(*_call("models", {}))


def clusters() -> Catalogue:
    """Hosts, fabrics and NICs of the catalogue."""
    return Catalogue(*_call("clusters", {}))


def accelerators() -> Catalogue:
    """Accelerators of the catalogue."""
    return Catalogue(*_call("accelerators", {}))
