# SPDX-License-Identifier: Apache-2.0
# Every attribute that a result always has is declared; a test holds this file against real results.
from typing import Any, Dict, Iterator, List, Optional, Tuple

import pandas

class Result:
    code: int
    def __init__(self, data: Dict[str, Any], code: int = 0) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
    def __getitem__(self, key: str) -> Any: ...
    def __contains__(self, key: object) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def keys(self) -> Any: ...
    def items(self) -> Iterator[Tuple[str, Any]]: ...
    def get(self, key: str, default: Any = None) -> Any: ...
    def to_dict(self) -> Dict[str, Any]: ...
    @property
    def ok(self) -> bool: ...
    def frame(self, name: Optional[str] = None) -> pandas.DataFrame: ...

class JobSummary(Result):
    model: str
    parameters: float
    accelerator: str
    gpus: int
    gpus_per_host: int
    batch: float
    sequence: int
    precision: str

class Bill(Result):
    """Seconds of a step by class; they sum to step_time_s."""
    compute: float
    recompute: float
    tensor: float
    context: float
    expert: float
    pipeline: float
    data_gather: float
    data_reduce: float
    bubble: float
    host: float
    optimizer: float
    offload: float
    other: float

class Rung(Result):
    name: str
    fraction: float

class Memory(Result):
    peak_bytes: float
    needed_bytes: float
    capacity_bytes: float
    fits: bool
    verdict: str

class ChokePoint(Result):
    kind: str
    where: str
    change: str
    step_time_if_ideal_s: float

class Prediction(Result):
    job: JobSummary
    strategy: str
    step_time_s: float
    step_time_low_s: float
    step_time_high_s: float
    tokens_per_s_per_gpu: float
    model_flops_per_s_per_gpu: float
    mfu: float
    hfu: float
    bill: Bill
    ladder: List[Rung]
    memory: Memory
    choke_point: Optional[ChokePoint]
    choke_points: List[ChokePoint]
    assumptions: List[str]

class Loser(Result):
    family: str
    strategy: Optional[str]
    step_time_s: Optional[float]
    reason: str

class Space(Result):
    enumerated: int
    pruned: int
    evaluated: int

class Plan(Result):
    job: JobSummary
    candidates: List[Prediction]
    space: Space
    optimal: bool
    why_not: List[Loser]

class Money(Result):
    usd_per_accelerator_hour: float
    price: str
    usd_per_step: float
    usd_per_billion_tokens: float
    usd_per_day: float
    spares_usd_per_day: float
    run_s: Optional[float]
    run_usd: Optional[float]

class Ratio(Result):
    value: float
    low: float
    high: float
    told_apart: bool

class Changed(Result):
    prediction: Optional[Prediction]
    step_time_ratio: Optional[Ratio]
    money: Optional[Money]

class Answer(Result):
    changes: List[str]
    job: JobSummary
    same_strategy: Changed
    replanned: Changed
    notes: List[str]

class Now(Result):
    prediction: Optional[Prediction]
    money: Optional[Money]

class WhatIf(Result):
    job: JobSummary
    strategy_given: bool
    now: Now
    best: Now
    answers: List[Answer]
    sensitivities: Optional[Result]
    scale: Result
    break_even: Optional[Result]
    deadline: Optional[Result]

class Device(Result):
    name: str
    kind: str

class Host(Result):
    name: str
    count: int
    gpus: List[Device]
    nics: List[Device]
    switches: List[Device]
    links: List[Result]
    gpu_pairs: List[Result]
    gpu_nic: List[Result]

class Finding(Result):
    id: str
    severity: str
    where: str
    what: str
    fix: str

class Wiring(Result):
    hosts: List[Host]
    fabric: Result
    findings: List[Finding]

class Cause(Result):
    id: str
    where: str
    what: str
    remedy: str
    cost_s: float
    step_time_without_s: float

class Rank(Result):
    rank: int
    file: str
    span_s: float
    bill: Bill

class Diagnosis(Result):
    world_size: int
    steps: int
    measured_s: float
    ideal_s: float
    choke_point: Optional[str]
    causes: List[Cause]
    ranks: List[Rank]
    collectives: List[Result]

class SettingsFile(Result):
    name: str
    text: str

class Settings(Result):
    target: str
    strategy: str
    files: List[SettingsFile]
    notices: List[Any]

class Validation(Result):
    rows: List[Result]

class Catalogue(Result): ...

def as_result(value: Any) -> Any: ...
