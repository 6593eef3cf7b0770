// SPDX-License-Identifier: Apache-2.0
#pragma once
// The catalogues as tables for people, one entry with its sources, and JSON. A list of one entry is shown in full.
#include <chokepoint/hardware/catalogue.hpp>
#include <chokepoint/model/model.hpp>
#include <chokepoint/report/style.hpp>
#include <string>
#include <vector>

namespace chokepoint::report {

/// Hosts with what they are made of, and fabrics; either list may be empty.
struct ClusterEntries {
  std::vector<hardware::HostTemplate> hosts;
  std::vector<hardware::FabricTemplate> fabrics;
  std::vector<hardware::Nic> nics;
};

std::string accelerators_table(const std::vector<hardware::Accelerator>& parts, const Style& style);
std::string accelerator_text(const hardware::Accelerator& part, const Style& style);
std::string accelerators_json(const std::vector<hardware::Accelerator>& parts);

std::string models_table(const std::vector<model::Model>& models, const Style& style);
std::string model_text(const model::Model& model, const Style& style);
std::string models_json(const std::vector<model::Model>& models);

std::string clusters_table(const ClusterEntries& entries, const Style& style);
/// Every entry of the lists in full.
std::string clusters_text(const ClusterEntries& entries, const Style& style);
std::string clusters_json(const ClusterEntries& entries);

}  // namespace chokepoint::report
