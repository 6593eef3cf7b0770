// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/lazy_entries.hpp>
#include <chokepoint/base/catalogue_text.hpp>
#include <chokepoint/model/model.hpp>

#include <array>
#include <utility>

namespace chokepoint::embedded {
extern const CatalogueText models;
}

#include "yaml_fields.hpp"

namespace chokepoint::model {

namespace {

Result<bool> read_sizes(const YamlMap& entry, Model& m) {
  TRY_INTO(m.layers, entry.required_int("layers", 1, 100000));
  TRY_INTO(m.hidden, entry.required_int("hidden", 1, 1 << 24));
  TRY_INTO(m.heads, entry.required_int("heads", 1, 1 << 16));
  TRY_INTO(m.vocab, entry.required_int("vocab", 1, 1 << 24));
  m.ffn_hidden = 4 * m.hidden;
  m.kv_heads = m.heads;
  m.head_dim = m.hidden / m.heads;
  const std::array<std::pair<const char*, int*>, 5> sizes = {{{"ffn", &m.ffn_hidden},
                                                              {"kv_heads", &m.kv_heads},
                                                              {"head_dim", &m.head_dim},
                                                              {"positions", &m.max_positions},
                                                              {"embedding_width", &m.embedding_width}}};
  for (const auto& [key, size] : sizes) {
    TRY_INTO([[maybe_unused]] const bool ok, read_int(entry, key, *size));
  }
  return true;
}

Result<Model> read_model(std::size_t index) {
  TRY_INTO(const YamlMap entry, embedded::models.parse(index));
  TRY_INTO(const std::string family, entry.required_text("family"));
  TRY_INTO(Model m, family_defaults(family));
  TRY_INTO(m.name, entry.required_text("name"));
  TRY_INTO(m.aliases, entry.texts("aliases"));
  TRY_INTO([[maybe_unused]] const bool sizes, read_sizes(entry, m));
  TRY_INTO([[maybe_unused]] const bool parts, read_parts(entry, m));
  TRY_INTO(m.published_parameters, entry.number("published", 1, 1e15));
  TRY_INTO(const std::optional<double> tolerance, entry.number("published_tolerance", 0, 1));
  m.published_tolerance = tolerance.value_or(0);
  TRY_INTO(m.source, entry.required_text("source"));
  TRY_INTO([[maybe_unused]] const bool ok, entry.finish());
  return validated(std::move(m));
}

Model made_or_abort(std::size_t index) {
  auto model = read_model(index);
  if (!model) broken_catalogue(model.error());
  return *std::move(model);
}

const Model& entry_or_abort(std::size_t index) {
  static LazyEntries<Model> entries(embedded::models.size(), made_or_abort);
  return entries.at(index);
}

}  // namespace

Result<Model> find_model(std::string_view name) {
  if (const auto index = embedded::models.find(name)) return entry_or_abort(*index);
  return embedded::models.unknown("model", name, "models");
}

const std::vector<Model>& models() {
  static const std::vector<Model> kAll = [] {
    std::vector<Model> all;
    for (std::size_t i = 0; i < embedded::models.size(); ++i) all.push_back(entry_or_abort(i));
    return all;
  }();
  return kAll;
}

}  // namespace chokepoint::model
