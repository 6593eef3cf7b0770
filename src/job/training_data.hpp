// SPDX-License-Identifier: Apache-2.0
#pragma once
// What of a model trains and on what: adapters, documents packed into sequences.
#include <chokepoint/base/yaml.hpp>
#include <chokepoint/parallel/job.hpp>

namespace chokepoint::job {

/// `lora: 16`: adapters of that rank train, the model's own weights do not.
Result<bool> read_adapters(const YamlMap& map, parallel::Job& job);
/// `documents: {mean: 700, spread: 0.8}` or `documents: {lengths: [512, 2048]}`: sequences are packed from documents, and
/// attention stays inside each. Needs the job's model and sequence.
Result<bool> read_documents(const YamlMap& map, parallel::Job& job);

}  // namespace chokepoint::job
