# SPDX-License-Identifier: Apache-2.0
from typing import List, Tuple

__version__: str

def answer(operation: str, request: str, open_disk: bool = True) -> Tuple[str, int]: ...
def operations() -> List[str]: ...
