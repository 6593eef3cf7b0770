# SPDX-License-Identifier: Apache-2.0
"""Results as plain objects: attributes for keys, lists for arrays."""
from __future__ import annotations

import keyword
from typing import Any, Dict, Iterator, List, Optional


def _attribute(key: str) -> str:
    name = "".join(c if c.isalnum() or c == "_" else "_" for c in key)
    return name + "_" if keyword.iskeyword(name) or not name or name[0].isdigit() else name


def as_result(value: Any) -> Any:
    if isinstance(value, dict):
        return Result(value)
    if isinstance(value, list):
        return [as_result(one) for one in value]
    return value


class Result:
    """One JSON object. Keys are attributes (dashes as underscores) and items: `bill.data_reduce` is `bill["data-reduce"]`.

    Read only; `to_dict()` gives the JSON back.
    """

    _main = ""  # the list that frame() takes without a name

    def __init__(self, data: Dict[str, Any], code: int = 0) -> None:
        object.__setattr__(self, "_data", data)
        object.__setattr__(self, "_names", {_attribute(key): key for key in data})
        object.__setattr__(self, "code", code)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        key = self._names.get(name)
        if key is None:
            raise AttributeError(f"no '{name}' here; there is: {', '.join(sorted(self._names))}")
        return as_result(self._data[key])

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("results are read only")

    def __reduce__(self) -> Any:
        return (type(self), (self._data, self.code))

    def __getitem__(self, key: str) -> Any:
        return as_result(self._data[key])

    def __contains__(self, key: object) -> bool:
        return key in self._data

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __dir__(self) -> List[str]:
        return sorted(set(super().__dir__()) | set(self._names))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Result) and self._data == other._data

    def keys(self) -> Any:
        return self._data.keys()

    def items(self) -> Any:
        return ((key, as_result(value)) for key, value in self._data.items())

    def get(self, key: str, default: Any = None) -> Any:
        return as_result(self._data[key]) if key in self._data else default

    def to_dict(self) -> Dict[str, Any]:
        """The JSON object itself."""
        return self._data

    @property
    def ok(self) -> bool:
        """False for a negative verdict: does not fit, a finding, a partial result."""
        return self.code == 0

    def frame(self, name: Optional[str] = None) -> Any:
        """A list of this result as pandas.DataFrame, a row an entry; nested objects become columns "bill.compute".

        Without a name the list that the result is about; an object of numbers (a bill) becomes one row.
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError("frame() needs pandas (Debian: python3-pandas); to_dict() gives the same without it") from error
        wanted = name or self._main
        value: Any = self._data
        for part in wanted.split(".") if wanted else []:
            value = value[part]
        if isinstance(value, dict):
            value = [value]
        rows = [row if isinstance(row, dict) else {"value": row} for row in value or []]
        return pandas.json_normalize(rows)

    def __repr__(self) -> str:
        shown = []
        for key, value in self._data.items():
            if isinstance(value, dict):
                shown.append(f"{_attribute(key)}={{{len(value)} keys}}")
            elif isinstance(value, list):
                shown.append(f"{_attribute(key)}=[{len(value)}]")
            elif key != "schema":
                shown.append(f"{_attribute(key)}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"


class Prediction(Result):
    """chokepoint.predict: step_time_s, bill, ladder, memory, choke_points ... (docs/formats/json.md)."""

    _main = "ladder"


class Plan(Result):
    """chokepoint.plan: candidates best first, space, why_not, would_fit."""

    _main = "candidates"


class WhatIf(Result):
    """chokepoint.whatif: now, best, answers, sensitivities, scale, break_even, deadline."""

    _main = "answers"

    def frame(self, name: Optional[str] = None) -> Any:
        """As Result.frame; "sensitivities" and "scale" are their lists."""
        lists = {"sensitivities": "sensitivities.resources", "scale": "scale.points"}
        return super().frame(lists.get(name or "", name))


class Wiring(Result):
    """chokepoint.wiring: hosts, fabric, findings."""

    _main = "findings"


class Diagnosis(Result):
    """chokepoint.diagnose: ranks, collectives, causes, choke_point."""

    _main = "causes"


class Settings(Result):
    """chokepoint.export: files and notices."""

    _main = "files"


class Validation(Result):
    """chokepoint.validate: rows with errors, sums by source."""

    _main = "rows"


class Catalogue(Result):
    """A catalogue: lists of names with what is known of each."""

    def frame(self, name: Optional[str] = None) -> Any:
        lists = [key for key, value in self._data.items() if isinstance(value, list)]
        return super().frame(name or (lists[0] if lists else ""))
