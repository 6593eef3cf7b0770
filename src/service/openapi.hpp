// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace chokepoint::service {

/// The OpenAPI 3.1 document of this server. The options of each operation come from the commands themselves.
const std::string& openapi_json();

}  // namespace chokepoint::service
