// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/trace/trace.hpp>

#include <gtest/gtest.h>

namespace chokepoint::trace {
namespace {

RankTrace read(const std::string& text) {
  auto trace = read_chrome_text(text, "worker3.json");
  EXPECT_TRUE(trace) << format(trace.error());
  return trace ? std::move(*trace) : RankTrace();
}

const std::string kKernel =
    R"({"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1712195495505582.988, "dur": 4.928, "args": {"stream": 7, "correlation": 5}})";

TEST(ChromeReader, ReadsNanosecondsExactlyWhereADoubleCannot) {
  const RankTrace t = read("{\"traceEvents\": [" + kKernel + "]}");
  ASSERT_EQ(t.device.size(), 1u);
  EXPECT_EQ(t.device.start_ns[0], 1712195495505582988);
  EXPECT_EQ(t.device.end_ns[0], 1712195495505587916);
  EXPECT_TRUE(t.absolute_clock);
}

TEST(ChromeReader, AddsTheBaseThatStandsAfterTheEvents) {
  const RankTrace t = read(R"({"traceEvents": [{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":1,"ts":"1.5","dur":2}],
    "baseTimeNanoseconds": 1727743122000000000, "distributedInfo": {"backend": "nccl", "rank": 5, "world_size": 8}})");
  EXPECT_EQ(t.device.start_ns.at(0), 1727743122000001500);
  EXPECT_EQ(t.rank, 5);
  EXPECT_EQ(t.world_size, 8);
}

TEST(ChromeReader, TakesTheRankFromTheFileNameWhereTheFileIsSilent) {
  const RankTrace t = read("[" + kKernel + "]");
  EXPECT_EQ(t.rank, 3);
}

TEST(ChromeReader, GoesOnAfterAnUnescapedQuoteAndCountsIt) {
  const RankTrace t = read("{\"traceEvents\": [\n{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"a \"b\" c\", \"ts\": 1, \"dur\": 1},\n" + kKernel + "\n]}");
  EXPECT_EQ(t.device.size(), 1u);
  EXPECT_EQ(t.defects[Defect::kSyntax], 1u);
}

TEST(ChromeReader, KeepsWhatStandsBeforeTheCut) {
  const std::string whole = "{\"traceEvents\": [\n" + kKernel + ",\n" + kKernel + "\n]}";
  const RankTrace t = read(whole.substr(0, whole.size() - 40));
  EXPECT_EQ(t.device.size(), 1u);
  EXPECT_EQ(t.defects[Defect::kCutOff], 1u);
}

TEST(ChromeReader, DropsTimesThatCannotBeAndCountsThem) {
  const RankTrace t = read("[" + kKernel + R"(,{"ph":"X","cat":"kernel","name":"k","ts":NaN,"dur":1},
    {"ph":"X","cat":"kernel","name":"k","ts":5,"dur":-1},{"ph":"X","cat":"kernel","name":"k","ts":5,"dur":7447000000000},
    {"ph":"X","cat":"kernel","name":"k","ts":0,"dur":0}])");
  EXPECT_EQ(t.device.size(), 1u);
  EXPECT_EQ(t.defects[Defect::kBadTime], 1u);
  EXPECT_EQ(t.defects[Defect::kNegativeDuration], 1u);
  EXPECT_EQ(t.defects[Defect::kImplausibleDuration], 1u);
  EXPECT_EQ(t.defects[Defect::kTimeBeforeBase], 1u);
  EXPECT_EQ(t.defects.dropped(), 4u);
}

TEST(ChromeReader, SynchronisationAndProjectedAnnotationsAreNoWork) {
  const RankTrace t = read("[" + kKernel + R"(,{"ph":"X","cat":"cuda_sync","name":"Stream Sync","ts":5,"dur":9,"args":{"stream":7}},
    {"ph":"X","cat":"gpu_user_annotation","name":"nccl:all_reduce","ts":5,"dur":9}])");
  EXPECT_EQ(t.device.size(), 1u);
}

TEST(ChromeReader, JoinsDeviceWorkWithItsLaunch) {
  const RankTrace t = read(R"([{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":2,"ts":10,"dur":3,"args":{"External id":9,"correlation":77}},
    {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":15,"dur":3,"args":{"correlation":77,"stream":7}},
    {"ph":"X","cat":"kernel","name":"orphan","pid":0,"tid":7,"ts":1,"dur":3,"args":{"correlation":70,"stream":7}}])");
  ASSERT_EQ(t.device.size(), 2u);
  EXPECT_EQ(t.names[t.device.name[0]], "orphan");  // sorted by start
  EXPECT_EQ(t.device.launch[0], -1);
  EXPECT_EQ(t.device.launch[1], 0);
  EXPECT_EQ(t.defects[Defect::kOrphan], 1u);
}

TEST(ChromeReader, ReadsCollectiveMetadataOfAKernel) {
  const RankTrace t = read(R"([{"ph":"X","cat":"kernel","name":"ncclDevKernel_Generic_4","pid":0,"tid":7,"ts":15,"dur":3,"args":{"stream":7,"Collective name":"allreduce",
    "In msg nelems":2049000,"Group size":2,"dtype":"BFloat16","Process Group Name":"0","Process Group Ranks":"[0, 1]","Comms Id":10159970886766084423,"Seq":12}}])");
  ASSERT_EQ(t.collectives.size(), 1u);
  EXPECT_EQ(t.collectives[0].in_elements, 2049000);
  EXPECT_EQ(t.collectives[0].sequence, 12);
  EXPECT_EQ(t.names[t.collectives[0].ranks], "[0, 1]");
  EXPECT_EQ(t.device.work[0], Work::kCommunication);
}

TEST(ChromeReader, PairsBeginningsWithEnds) {
  const RankTrace t = read(R"([{"ph":"B","cat":"kernel","name":"k","pid":0,"tid":"s","ts":10},{"ph":"E","pid":0,"tid":"s","ts":14},{"ph":"E","pid":0,"tid":"s","ts":15}])");
  ASSERT_EQ(t.device.size(), 1u);
  EXPECT_EQ(t.device.end_ns[0] - t.device.start_ns[0], 4000);
  EXPECT_EQ(t.defects[Defect::kUnmatchedEnd], 1u);
}

TEST(ChromeReader, RefusesWhatIsNoTrace) {
  EXPECT_EQ(format(read_chrome_text("", "a").error()), "a: error: the file is empty\n  expected a Chrome trace (JSON)\n");
  EXPECT_EQ(format(read_chrome_text("hello", "a").error()), "a:1:1: error: not a Chrome trace: it begins with neither '{' nor '['\n");
  EXPECT_EQ(format(read_chrome_text("{\"a\": {}}", "a").error()), "a: error: not a trace: the JSON holds no traceEvents\n");
  EXPECT_EQ(format(read_chrome_text("[]", "a").error()), "a: error: the trace holds no events\n");
}

TEST(KernelNames, CommunicationOfEveryGeneration) {
  for (const char* kernel : {"ncclAllReduceRingLLKernel_sum_f32", "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)", "ncclDevKernel_Generic_4(x)",
                             "void vllm::cross_device_reduce_1stage<half>", "void dpsk::ep::internode::dispatch<false>(int)", "hcclAllReduce"}) {
    EXPECT_EQ(classify_kernel(kernel), Work::kCommunication) << kernel;
  }
  EXPECT_EQ(classify_kernel("ampere_bf16_s16816gemm"), Work::kCompute);
  EXPECT_EQ(classify_kernel("Memcpy HtoD (Pinned -> Device)"), Work::kCopy);
  EXPECT_EQ(classify_kernel("Memset (Device)"), Work::kSet);
}

}  // namespace
}  // namespace chokepoint::trace
