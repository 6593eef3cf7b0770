// SPDX-License-Identifier: Apache-2.0
#include "gpu_libraries.hpp"

#include <dlfcn.h>

#include <string_view>

namespace chokepoint::commands {
namespace {

/// A library and the first function it turned out to lack.
class Opened {
 public:
  explicit Opened(const char* name) : name_(name), handle_(::dlopen(name, RTLD_NOW | RTLD_LOCAL), [](void* opened) { if (opened != nullptr) ::dlclose(opened); }) {}
  bool there() const { return handle_ != nullptr; }
  const std::shared_ptr<void>& handle() const { return handle_; }

  template <class Function>
  Opened& find(Function*& function, const char* symbol) {
    function = reinterpret_cast<Function*>(::dlsym(handle_.get(), symbol));
    if (function == nullptr && missing_.empty()) missing_ = symbol;
    return *this;
  }
  bool whole() const { return missing_.empty(); }
  tl::unexpected<Error> absent(const char* package) const {
    const char* reason = ::dlerror();
    const bool no_file = reason == nullptr || std::string_view(reason).find("No such file") != std::string_view::npos;
    Error error{no_file ? name_ + " is not installed" : "cannot open " + name_ + ": " + reason, {}, {std::string("it comes with ") + package}};
    return tl::make_unexpected(std::move(error));
  }
  tl::unexpected<Error> incomplete() const { return tl::make_unexpected(Error{name_ + " has no function " + missing_, {}, {"expected a newer version"}}); }

 private:
  std::string name_;
  std::shared_ptr<void> handle_;
  std::string missing_;
};

}  // namespace

Result<CudaDriver> open_cuda_driver() {
  Opened library("libcuda.so.1");
  if (!library.there()) return library.absent("NVIDIA's driver");
  CudaDriver cuda;
  library.find(cuda.init, "cuInit").find(cuda.error_text, "cuGetErrorString").find(cuda.count, "cuDeviceGetCount").find(cuda.device, "cuDeviceGet");
  library.find(cuda.pci_address, "cuDeviceGetPCIBusId").find(cuda.retain, "cuDevicePrimaryCtxRetain").find(cuda.set_current, "cuCtxSetCurrent");
  library.find(cuda.allocate, "cuMemAlloc_v2").find(cuda.release, "cuMemFree_v2").find(cuda.fill, "cuMemsetD8_v2");
  library.find(cuda.allocate_host, "cuMemAllocHost_v2").find(cuda.release_host, "cuMemFreeHost").find(cuda.copy_to_host, "cuMemcpyDtoHAsync_v2");
  library.find(cuda.create_stream, "cuStreamCreate").find(cuda.wait_for_stream, "cuStreamSynchronize");
  library.find(cuda.create_event, "cuEventCreate").find(cuda.destroy_event, "cuEventDestroy_v2").find(cuda.record, "cuEventRecord").find(cuda.query, "cuEventQuery");
  if (!library.whole()) return library.incomplete();
  const char* words = nullptr;
  if (const int error = cuda.init(0); error != 0) {
    cuda.error_text(error, &words);
    return fail(std::string("NVIDIA's driver does not start: ") + (words == nullptr ? std::to_string(error) : words));
  }
  int count = 0;
  if (cuda.count(&count) != 0 || count < 1) return fail("NVIDIA's driver shows no GPU", {}, {"is CUDA_VISIBLE_DEVICES set to nothing?"});
  cuda.library = library.handle();
  return cuda;
}

Result<NcclLibrary> open_nccl() {
  Opened library("libnccl.so.2");
  if (!library.there()) return library.absent("NCCL (package libnccl2); Python's own copy is found with LD_LIBRARY_PATH");
  NcclLibrary nccl;
  library.find(nccl.version, "ncclGetVersion").find(nccl.error_text, "ncclGetErrorString").find(nccl.unique_id, "ncclGetUniqueId").find(nccl.join, "ncclCommInitRank");
  library.find(nccl.async_error, "ncclCommGetAsyncError").find(nccl.group_start, "ncclGroupStart").find(nccl.group_end, "ncclGroupEnd");
  library.find(nccl.send, "ncclSend").find(nccl.receive, "ncclRecv").find(nccl.all_reduce, "ncclAllReduce").find(nccl.all_gather, "ncclAllGather");
  library.find(nccl.reduce_scatter, "ncclReduceScatter");
  if (!library.whole()) return library.incomplete();
  nccl.library = library.handle();
  return nccl;
}

}  // namespace chokepoint::commands
