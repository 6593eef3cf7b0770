// SPDX-License-Identifier: Apache-2.0
#pragma once
// A shared library opened at run time.
#include <chokepoint/base/result.hpp>
#include <memory>
#include <string>
#include <vector>

namespace chokepoint::wiring {

class Library {
 public:
  /// The first of `names` that opens; `package` is what brings it. `for_plugins`: what the library itself opens later may
  /// use its symbols.
  static Result<Library> open(const std::vector<std::string>& names, const std::string& package, bool for_plugins = false);

  /// Sets `function` to the symbol; false where this version of the library lacks it.
  template <class Function>
  bool find(Function*& function, const char* symbol) {
    function = reinterpret_cast<Function*>(address(symbol));
    return function != nullptr;
  }
  /// The failure of a library without something it should have.
  tl::unexpected<Error> incomplete() const;

 private:
  explicit Library(void* handle, std::string name);
  void* address(const char* symbol);

  std::shared_ptr<void> handle_;
  std::string name_;
  std::string missing_;
};

Result<std::string> read_hwloc();
Result<std::string> read_ibverbs();
Result<std::string> read_ibnetdisc(const std::vector<std::string>& ports);
Result<std::string> read_nvml();
Result<std::string> read_rocm_smi();

}  // namespace chokepoint::wiring
