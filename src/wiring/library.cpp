// SPDX-License-Identifier: Apache-2.0
#include "library.hpp"

#include <dlfcn.h>

#include <chokepoint/wiring/libraries.hpp>
#include <utility>

namespace chokepoint::wiring {

Library::Library(void* handle, std::string name) : handle_(handle, [](void* opened) { ::dlclose(opened); }), name_(std::move(name)) {}

Result<Library> Library::open(const std::vector<std::string>& names, const std::string& package, bool for_plugins) {
  for (const std::string& name : names) {
    if (void* handle = ::dlopen(name.c_str(), RTLD_NOW | (for_plugins ? RTLD_GLOBAL : RTLD_LOCAL)); handle != nullptr) return Library(handle, name);
  }
  // The loader's own words tell "not there" from "there, but something it needs is not".
  const char* reason = ::dlerror();
  const bool absent = reason == nullptr || std::string_view(reason).find(names.back() + ": cannot open shared object file: No such file") != std::string_view::npos;
  Error error{absent ? names.front() + " is not installed" : "cannot open " + names.front(), {}, {"it comes with " + package}};
  if (!absent) error.notes.emplace_back(reason);
  return tl::make_unexpected(std::move(error));
}

void* Library::address(const char* symbol) {
  void* found = ::dlsym(handle_.get(), symbol);
  if (found == nullptr && missing_.empty()) missing_ = symbol;
  return found;
}

tl::unexpected<Error> Library::incomplete() const {
  return tl::make_unexpected(Error{name_ + " has no function " + missing_, {}, {"expected a version of the library that has it"}});
}

const std::vector<std::string_view>& library_names() {
  static const std::vector<std::string_view> kNames{"hwloc", "ibverbs", "ibnetdisc", "nvml", "rocm-smi"};
  return kNames;
}

Result<std::string> read_library(std::string_view name, const std::vector<std::string>& ports) {
  if (name == "hwloc") return read_hwloc();
  if (name == "ibverbs") return read_ibverbs();
  if (name == "ibnetdisc") return read_ibnetdisc(ports);
  if (name == "nvml") return read_nvml();
  if (name == "rocm-smi") return read_rocm_smi();
  return fail("unknown library '" + std::string(name) + "'", {}, {"expected hwloc, ibverbs, ibnetdisc, nvml or rocm-smi"});
}

/// The functions used are the same since hwloc 2.0; a topology is a pointer to the caller.
Result<std::string> read_hwloc() {
  constexpr int kKeepAll = 0;  // enum hwloc_type_filter_e: bridges and devices without a driver stay as well
  TRY_INTO(Library library, Library::open({"libhwloc.so.15", "libhwloc.so"}, "hwloc (Debian: libhwloc15)", true));
  int (*init)(void**) = nullptr;
  int (*filter_devices)(void*, int) = nullptr;
  int (*load)(void*) = nullptr;
  int (*export_xml)(void*, char**, int*, unsigned long) = nullptr;
  void (*free_xml)(void*, char*) = nullptr;
  void (*destroy)(void*) = nullptr;
  const bool whole = library.find(init, "hwloc_topology_init") && library.find(filter_devices, "hwloc_topology_set_io_types_filter") &&
                     library.find(load, "hwloc_topology_load") && library.find(export_xml, "hwloc_topology_export_xmlbuffer") &&
                     library.find(free_xml, "hwloc_free_xmlbuffer") && library.find(destroy, "hwloc_topology_destroy");
  if (!whole) return library.incomplete();
  void* topology = nullptr;
  if (init(&topology) != 0) return fail("hwloc does not start");
  const std::unique_ptr<void, void (*)(void*)> owner(topology, destroy);
  char* xml = nullptr;
  int length = 0;
  if (filter_devices(topology, kKeepAll) != 0 || load(topology) != 0) return fail("hwloc cannot read this machine", {}, {"HWLOC_XMLFILE, where it is set, has to name a file of a version this library reads"});
  if (export_xml(topology, &xml, &length, 0) != 0 || xml == nullptr || length <= 0) return fail("hwloc cannot write its XML");
  std::string text(xml, static_cast<std::size_t>(length));
  free_xml(topology, xml);
  if (const std::size_t end = text.find('\0'); end != std::string::npos) text.resize(end);
  return text;
}

}  // namespace chokepoint::wiring
