// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the test's NCCL needs of the test's driver: work for a stream.
#include <functional>

void fake_enqueue(void* stream, std::function<void()> task);
