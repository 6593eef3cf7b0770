// SPDX-License-Identifier: Apache-2.0
#pragma once
// NVIDIA's driver and NCCL, opened at run time: the few functions that the network probe calls, written out with the
// signatures that their documentation keeps stable (CUDA Driver API reference; NCCL API reference). No header is needed.
#include <chokepoint/base/result.hpp>
#include <cstddef>
#include <memory>
#include <string>

namespace chokepoint::commands {

using CudaAddress = unsigned long long;  // CUdeviceptr
using CudaHandle = void*;                // CUcontext, CUstream, CUevent

struct CudaDriver {
  static constexpr int kNotReady = 600;            // CUDA_ERROR_NOT_READY
  static constexpr unsigned kNonBlocking = 1;      // CU_STREAM_NON_BLOCKING
  static constexpr unsigned kWithoutTiming = 2;    // CU_EVENT_DISABLE_TIMING

  int (*init)(unsigned) = nullptr;
  int (*error_text)(int, const char**) = nullptr;
  int (*count)(int*) = nullptr;
  int (*device)(int*, int) = nullptr;
  int (*pci_address)(char*, int, int) = nullptr;
  int (*retain)(CudaHandle*, int) = nullptr;
  int (*set_current)(CudaHandle) = nullptr;
  int (*allocate)(CudaAddress*, std::size_t) = nullptr;
  int (*release)(CudaAddress) = nullptr;
  int (*fill)(CudaAddress, unsigned char, std::size_t) = nullptr;
  int (*allocate_host)(void**, std::size_t) = nullptr;
  int (*release_host)(void*) = nullptr;
  int (*copy_to_host)(void*, CudaAddress, std::size_t, CudaHandle) = nullptr;
  int (*create_stream)(CudaHandle*, unsigned) = nullptr;
  int (*wait_for_stream)(CudaHandle) = nullptr;
  int (*create_event)(CudaHandle*, unsigned) = nullptr;
  int (*destroy_event)(CudaHandle) = nullptr;
  int (*record)(CudaHandle, CudaHandle) = nullptr;
  int (*query)(CudaHandle) = nullptr;

  std::shared_ptr<void> library;
};

struct NcclId {  // ncclUniqueId, passed by value
  char bytes[128];
};
using NcclComm = void*;

struct NcclLibrary {
  static constexpr int kBytes = 0;       // ncclInt8
  static constexpr int kFloats = 7;      // ncclFloat32
  static constexpr int kSum = 0;         // ncclSum
  static constexpr int kInProgress = 7;  // ncclInProgress

  int (*version)(int*) = nullptr;
  const char* (*error_text)(int) = nullptr;
  int (*unique_id)(NcclId*) = nullptr;
  int (*join)(NcclComm*, int, NcclId, int) = nullptr;
  int (*async_error)(NcclComm, int*) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*send)(const void*, std::size_t, int, int, NcclComm, CudaHandle) = nullptr;
  int (*receive)(void*, std::size_t, int, int, NcclComm, CudaHandle) = nullptr;
  int (*all_reduce)(const void*, void*, std::size_t, int, int, NcclComm, CudaHandle) = nullptr;
  int (*all_gather)(const void*, void*, std::size_t, int, NcclComm, CudaHandle) = nullptr;
  int (*reduce_scatter)(const void*, void*, std::size_t, int, int, NcclComm, CudaHandle) = nullptr;

  std::shared_ptr<void> library;
};

/// The driver, started; its error says whether it is absent, too old, or has no GPU.
Result<CudaDriver> open_cuda_driver();
Result<NcclLibrary> open_nccl();

}  // namespace chokepoint::commands
