// SPDX-License-Identifier: Apache-2.0
#pragma once
// Catalogue files compiled in by cmake/embed_catalogue.cmake.
#include <chokepoint/base/catalogue_text.hpp>

namespace chokepoint::embedded {
extern const CatalogueText accelerators;
extern const CatalogueText nics;
extern const CatalogueText hosts;
extern const CatalogueText fabrics;
}  // namespace chokepoint::embedded
