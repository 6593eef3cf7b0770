// SPDX-License-Identifier: Apache-2.0
// A simulated step as torch.profiler writes one (Kineto's Chrome format, version of 2024: nanoseconds as three
// decimals, collectives with their metadata on the kernel). Every kernel has its launch: work behind a host gap is
// launched when it starts, all other work when the device could first have taken it. What a rank receives is a kernel
// that starts when the rank has nothing else to do, as a posted receive would.
#include <chokepoint/report/simulate_view.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <fmt/format.h>
#include <iterator>
#include <zlib.h>

namespace chokepoint::report {

using engine::Lane;
using engine::Meet;
using engine::Op;
using engine::OpTime;
using engine::Simulated;
using engine::StageGraph;
using engine::Work;

namespace {

constexpr std::int64_t kBase_ns = 1'767'189'312'000'000'000;  // a Kineto base of 2026
constexpr std::int64_t kFirst_ns = 1'000'000'000;  // events begin a second after it: time 0 is what writers clamp to

std::int64_t ns(double seconds) { return std::llround(seconds * 1e9); }
std::string us(std::int64_t time_ns) { return fmt::format("{}.{:03}", time_ns / 1000, time_ns % 1000); }

int stream_of(const Op& op) {
  if (op.work == Work::kNorm) return 22;
  switch (op.meet) {
    case Meet::kTensor:
      return 13;
    case Meet::kContext:
      return 14;
    case Meet::kExpert:
      return 15;
    case Meet::kReplicate:
      return 21;
    case Meet::kData:
    case Meet::kShard:
    case Meet::kTied:
    case Meet::kWorld:
      return 20;
    case Meet::kNobody:
      break;
  }
  if (op.work == Work::kSendForward) return 16;
  if (op.work == Work::kSendBackward) return 17;
  return 7;
}
std::string_view stream_name(int stream) {
  switch (stream) {
    case 7:
      return "compute";
    case 13:
      return "tensor parallel";
    case 14:
      return "context parallel";
    case 15:
      return "expert parallel";
    case 16:
      return "send activations";
    case 17:
      return "send gradients";
    case 18:
      return "receive activations";
    case 19:
      return "receive gradients";
    case 20:
      return "data parallel";
    case 21:
      return "replicas";
    case 22:
      return "gradient norm";
    default:
      return "host";
  }
}

std::string_view description_of(Meet meet) {
  switch (meet) {
    case Meet::kTensor:
      return "TENSOR_MODEL_PARALLEL_GROUP";
    case Meet::kContext:
      return "CONTEXT_PARALLEL_GROUP";
    case Meet::kExpert:
      return "EXPERT_MODEL_PARALLEL_GROUP";
    case Meet::kData:
      return "DATA_PARALLEL_GROUP_WITH_CP";
    case Meet::kShard:
      return "mesh_dp_shard";
    case Meet::kReplicate:
      return "mesh_dp_replicate";
    case Meet::kTied:
      return "EMBEDDING_GROUP";
    case Meet::kWorld:
      return "default_pg";
    case Meet::kNobody:
      break;
  }
  return "PIPELINE_MODEL_PARALLEL_GROUP";
}

struct CollectiveWords {
  std::string_view metadata;
  std::string_view kernel;
};
CollectiveWords words_of(collective::Op op) {
  switch (op) {
    case collective::Op::kAllReduce:
      return {"allreduce", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"};
    case collective::Op::kAllGather:
      return {"_allgather_base", "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"};
    case collective::Op::kReduceScatter:
      return {"_reduce_scatter_base", "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"};
    case collective::Op::kBroadcast:
      return {"broadcast", "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)"};
    case collective::Op::kReduce:
      return {"reduce", "ncclDevKernel_Reduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"};
    case collective::Op::kAllToAll:
      return {"all_to_allv", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"};
    case collective::Op::kSendRecv:
      break;
  }
  return {"send", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"};
}

std::string ranks_text(const std::vector<int>& ranks) {
  constexpr std::size_t kShown = 30;  // torch cuts here
  std::string out = "[";
  for (std::size_t i = 0; i < std::min(kShown, ranks.size()); ++i)
    out += fmt::format("{}{}", i > 0 ? ", " : "", ranks[i]);
  return out + (ranks.size() > kShown ? ", ...]" : "]");
}

class RankWriter {
 public:
  RankWriter(const Simulated& s, int rank, std::string& out)
      : s_(s),
        rank_(rank),
        class_(static_cast<std::size_t>(s.fold.class_of[static_cast<std::size_t>(rank)])),
        stage_(s.graph.stages[static_cast<std::size_t>(s.layout.stage_of(rank))]),
        out_(out) {
    for (std::size_t m = 1; m < engine::kMeetCount; ++m) {
      const auto meet = static_cast<Meet>(m);
      if (stage_.meetings[m] == 0) continue;
      const std::vector<int> ranks = members(meet);
      name_[m] = fmt::format("{}", static_cast<int>(m) * 1'000'000 + s_.layout.group_of(meet, rank_));
      ranks_[m] = ranks_text(ranks);
      size_[m] = static_cast<int>(ranks.size());
    }
    predecessors();
    for (const Op& op : stage_.ops) {
      chunks_ = std::max(chunks_, op.chunk + 1);
      int& parts = parts_[{op.work, op.micro_batch, op.chunk}];
      parts = std::max(parts, op.part + 1);
    }
  }

  void metadata() {
    event(fmt::format(R"j("ph":"M","pid":{},"tid":0,"name":"process_name","args":{{"name":"rank {} (stage {})"}})j",
                      rank_, rank_, s_.layout.stage_of(rank_)));
    event(fmt::format(R"j("ph":"M","pid":{},"tid":0,"name":"process_sort_index","args":{{"sort_index":{}}})j", rank_,
                      rank_));
    for (const int stream : {7, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22}) {
      event(fmt::format(R"j("ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":"stream {} {}"}})j", rank_,
                        stream, stream, stream_name(stream)));
    }
    event(fmt::format(R"j("ph":"M","pid":{},"tid":0,"name":"process_name","args":{{"name":"host of rank {}"}})j",
                      kHostPid + rank_, rank_));
  }

  void step(const engine::Run& run, int number, double offset_s) {
    offset_ns_ = kFirst_ns + ns(offset_s);
    event(
        fmt::format(R"j("ph":"X","cat":"user_annotation","name":"ProfilerStep#{}","pid":{},"tid":1,"ts":{},"dur":{})j",
                    number, kHostPid + rank_, us(at(0)), us(at(run.end_s) - at(0))));
    const std::vector<OpTime>& times = run.times[class_];
    for (std::uint32_t i = 0; i < stage_.ops.size(); ++i) {
      const Op& op = stage_.ops[i];
      if (incoming_[i].op != kNone) receive(run, i);
      if (op.work == Work::kHost || (op.meet != Meet::kNobody && size_[static_cast<std::size_t>(op.meet)] < 2))
        continue;
      if (op.work == Work::kFixed) {
        last_copy(times[i]);
      } else if (op.meet == Meet::kNobody && op.peer_stage < 0) {
        kernel(i, times[i], times);
      } else {
        transfer(i, times[i], times);
      }
    }
  }

 private:
  static constexpr int kHostPid = 1'000'000;
  static constexpr std::uint32_t kNone = static_cast<std::uint32_t>(-1);
  struct Incoming {
    int stage = -1;
    std::uint32_t op = kNone;
  };

  std::vector<int> members(Meet meet) const {
    if (meet != Meet::kWorld) return s_.layout.members(meet, rank_);
    std::vector<int> all(static_cast<std::size_t>(s_.layout.ranks()));
    for (std::size_t r = 0; r < all.size(); ++r) all[r] = static_cast<int>(r);
    return all;
  }

  void predecessors() {
    incoming_.resize(stage_.ops.size());
    before_.assign(stage_.ops.size(), kNone);
    const int own = s_.layout.stage_of(rank_);
    for (std::size_t st = 0; st < s_.graph.stages.size(); ++st) {
      const auto& ops = s_.graph.stages[st].ops;
      for (std::uint32_t i = 0; i < ops.size(); ++i) {
        if (ops[i].peer_stage == own) incoming_[ops[i].peer_op] = {static_cast<int>(st), i};
      }
    }
    const auto& line = stage_.lanes[static_cast<std::size_t>(Lane::kCompute)];
    for (std::size_t k = 1; k < line.size(); ++k) before_[line[k]] = line[k - 1];
  }

  std::int64_t at(double seconds) const { return offset_ns_ + ns(seconds); }

  void event(const std::string& body) { out_ += (out_.back() == '[' ? "\n{" : ",\n{") + body + "}"; }

  /// The host call that launches the next kernel, over at `end_ns`; inside a range that says why where there is one.
  void launch(std::int64_t end_ns, std::string_view call, std::string_view range) {
    ++correlation_;
    const std::int64_t begin = std::max(end_ns - 2, at(0));  // what the step's first work is launched by belongs to it
    const int thread = range.empty() ? 1 : range.front() == 'O' ? 2 : 3;
    if (!range.empty()) {
      event(fmt::format(R"j("ph":"X","cat":"cpu_op","name":"{}","pid":{},"tid":{},"ts":{},"dur":{})j", range,
                        kHostPid + rank_, thread, us(begin - 1), us(4)));
    }
    event(fmt::format(
        R"j("ph":"X","cat":"cuda_runtime","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{"correlation":{}}})j",
        call, kHostPid + rank_, thread, us(begin), us(end_ns - begin), correlation_));
  }

  /// When the launch of work on the compute lane is over.
  std::int64_t launched(std::uint32_t i, const OpTime& t, const std::vector<OpTime>& times) const {
    const std::uint32_t b = before_[i];
    const bool behind_host = b == kNone || stage_.ops[b].work == Work::kHost || times[b].end_s < t.arrive_s;
    if (behind_host) return at(t.arrive_s);
    return std::min(at(t.arrive_s), at(std::max(times[b].start_s, 0.0)) + 2);
  }

  /// What a pass computes beside its layers at one end of the model: how much of the operation, and where in it.
  struct End {
    double share = 0;
    bool first = false;
    std::string_view name;
  };

  /// Embedding and head have kernels of their own, as in a real trace, where a pipeline has them on different stages.
  End end_of(const Op& op) const {
    const int stage = s_.layout.stage_of(rank_);
    const int last = static_cast<int>(s_.pieces.stages.size()) - 1;
    if (last == 0 || (stage != 0 && stage != last) || (op.work != Work::kForward && op.work != Work::kBackward) || op.seconds <= 0) return {};
    const int parts = parts_.at({op.work, op.micro_batch, op.chunk});
    const bool head = stage == last;
    if (op.chunk != (head ? chunks_ - 1 : 0) || (op.part >= 0 && op.part != (head ? parts - 1 : 0))) return {};
    const simulate::StagePieces& pieces = s_.pieces.stages[static_cast<std::size_t>(stage)];
    const bool forward = op.work == Work::kForward;
    const double seconds = (forward ? pieces.end_forward : pieces.end_backward).compute_s;
    return {std::min(1.0, seconds / op.seconds), forward != head, head ? "output layer" : "embedding"};
  }

  void kernel(std::uint32_t i, const OpTime& t, const std::vector<OpTime>& times) {
    const Op& op = stage_.ops[i];
    const std::int64_t begin = at(t.start_s);
    const std::int64_t end = at(t.end_s);
    if (end <= begin) return;
    const std::string_view range = op.work == Work::kRecompute   ? "torch::autograd::CheckpointFunctionBackward"
                                   : op.work == Work::kOptimizer ? "Optimizer.step#AdamW.step"
                                                                 : "";
    const bool copy = op.work == Work::kOffload;
    std::string label(engine::name(op.work));
    const std::string_view pass = engine::name(op.work);
    if (op.part >= 0) label += fmt::format(" layer {}", op.part);
    if (copy) label = "Memcpy HtoD (Pinned -> Device)";
    const auto one = [&](const std::string& name, std::int64_t from, std::int64_t to) {
      if (to <= from) return;
      launch(launched(i, t, times), copy ? "cudaMemcpyAsync" : "cudaLaunchKernel", range);
      event(fmt::format(
          R"j("ph":"X","cat":"{}","name":"{}","pid":{},"tid":7,"ts":{},"dur":{},"args":{{"stream":7,"device":{},"correlation":{},"micro batch":{},"chunk":{}}})j",
          copy ? "gpu_memcpy" : "kernel", name, rank_, us(from), us(to - from), rank_, correlation_, op.micro_batch, op.chunk));
    };
    const End own = end_of(op);
    const auto length = static_cast<std::int64_t>(std::llround(own.share * static_cast<double>(end - begin)));
    const std::string own_label = fmt::format("{} {}", own.name, pass);
    if (own.first) one(own_label, begin, begin + length);
    one(label, own.first ? begin + length : begin, own.first ? end : end - length);
    if (!own.first) one(own_label, end - length, end);
  }

  /// The step's own overhead of the host ends with the loss that it reads back.
  void last_copy(const OpTime& t) {
    const std::int64_t end = at(t.end_s);
    const std::int64_t begin = std::max(at(t.start_s), end - 1000);
    launch(begin, "cudaMemcpyAsync", "");
    event(fmt::format(
        R"j("ph":"X","cat":"gpu_memcpy","name":"Memcpy DtoH (Device -> Pageable)","pid":{},"tid":7,"ts":{},"dur":{},"args":{{"stream":7,"device":{},"correlation":{}}})j",
        rank_, us(begin), us(end - begin), rank_, correlation_));
  }

  void transfer(std::uint32_t i, const OpTime& t, const std::vector<OpTime>& times) {
    const Op& op = stage_.ops[i];
    const auto m = static_cast<std::size_t>(op.meet);
    std::string group = name_[m];
    std::string ranks = ranks_[m];
    int size = size_[m];
    if (op.peer_stage >= 0) {
      const int stage = s_.layout.stage_ranks();
      const bool forward = op.work == Work::kSendForward;
      const int peer = op.peer_stage * stage + rank_ % stage;
      pair_names(rank_, peer, forward, group, ranks);
      size = 2;
    }
    const std::int64_t issued = op.lane == Lane::kCompute
                                    ? launched(i, t, times)
                                    : std::min(at(t.arrive_s), std::max(at(0) + 2, at(t.ready_s)));
    launch(issued, "cudaLaunchKernel", "");
    communication(op, group, ranks, size, words_of(op.collective).metadata, stream_of(op), at(t.arrive_s), at(t.end_s));
  }

  static void pair_names(int from, int to, bool forward, std::string& group, std::string& ranks) {
    group = fmt::format("{}{:07}{:07}", forward ? 1 : 2, from, to);
    ranks = fmt::format("[{}, {}]", std::min(from, to), std::max(from, to));
  }

  void receive(const engine::Run& run, std::uint32_t i) {
    const Op& send = s_.graph.stages[static_cast<std::size_t>(incoming_[i].stage)].ops[incoming_[i].op];
    const bool forward = send.work == Work::kSendForward;
    const int stage = s_.layout.stage_ranks();
    const int peer = incoming_[i].stage * stage + rank_ % stage;
    const auto peer_class = static_cast<std::size_t>(s_.fold.class_of[static_cast<std::size_t>(peer)]);
    const OpTime& sent = run.times[peer_class][incoming_[i].op];
    // Idle since the end of what the rank did before; a message that came while it was busy needed no waiting.
    const double idle = before_[i] == kNone ? 0 : run.times[class_][before_[i]].end_s;
    std::int64_t& free = forward ? forward_free_ns_ : backward_free_ns_;
    const std::int64_t begin = std::max(free, at(std::min(idle, sent.start_s)));
    free = at(sent.end_s);
    std::string group;
    std::string ranks;
    pair_names(peer, rank_, forward, group, ranks);
    launch(begin, "cudaLaunchKernel", "");
    communication(send, group, ranks, 2, "recv", forward ? 18 : 19, std::min(begin, free), free);
  }

  void communication(const Op& op, const std::string& group, const std::string& ranks, int size,
                     std::string_view metadata, int stream, std::int64_t begin, std::int64_t end) {
    const auto elements = static_cast<std::int64_t>(std::llround(op.bytes / 2));
    const bool gathers = op.collective == collective::Op::kAllGather;
    const bool scatters = op.collective == collective::Op::kReduceScatter;
    std::string sizes;
    if (elements > 0) {
      sizes = fmt::format(R"j("In msg nelems":{},"Out msg nelems":{},)j", gathers ? elements / size : elements,
                          scatters ? elements / size : elements);
    }
    const std::string_view words = op.work == Work::kNorm ? description_of(Meet::kWorld) : description_of(op.meet);
    event(fmt::format(
        R"j("ph":"X","cat":"kernel","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{"stream":{},"device":{},"correlation":{},)j"
        R"j("Collective name":"{}",{}"Group size":{},"dtype":"BFloat16","Process Group Name":"{}","Process Group Description":"{}","Process Group Ranks":"{}"}})j",
        words_of(op.collective).kernel, rank_, stream, us(begin), us(std::max<std::int64_t>(0, end - begin)), stream,
        rank_, correlation_, metadata, sizes, size, group, words, ranks));
  }

  const Simulated& s_;
  int rank_;
  std::size_t class_;
  const StageGraph& stage_;
  std::string& out_;
  std::array<std::string, engine::kMeetCount> name_;
  std::array<std::string, engine::kMeetCount> ranks_;
  std::array<int, engine::kMeetCount> size_{};
  std::vector<Incoming> incoming_;
  std::vector<std::uint32_t> before_;  ///< on the compute lane
  std::int64_t offset_ns_ = 0;
  std::int64_t forward_free_ns_ = 0;
  std::int64_t backward_free_ns_ = 0;
  std::int64_t correlation_ = 0;
  int chunks_ = 1;  ///< of the stage's model chunks
  std::map<std::tuple<Work, int, int>, int> parts_;  ///< into which a pass of a micro-batch through a chunk is cut
};

}  // namespace

std::vector<int> timeline_ranks(const Simulated& s, int most) {
  std::vector<int> ranks;
  if (s.layout.ranks() <= most) {
    for (int r = 0; r < s.layout.ranks(); ++r) ranks.push_back(r);
    return ranks;
  }
  for (const engine::RankClass& c : s.fold.classes) {
    if (static_cast<int>(ranks.size()) < most) ranks.push_back(c.representative);
  }
  return ranks;
}

std::string timeline_json(const parallel::Job& job, const Simulated& s, std::span<const engine::Run> steps,
                          const std::vector<int>& ranks) {
  std::string out =
      fmt::format(R"j({{"schemaVersion":1,"deviceProperties":[{{"id":0,"name":"{}"}}],)j", job.accelerator.name);
  const std::string own = ranks.size() == 1 ? fmt::format(R"j("rank":{},)j", ranks.front()) : std::string();
  out += fmt::format(
      R"j("distributedInfo":{{"backend":"nccl",{}"world_size":{}}},"displayTimeUnit":"ms","baseTimeNanoseconds":{},"traceName":"simulated","traceEvents":[)j",
      own, s.layout.ranks(), kBase_ns);
  for (const int rank : ranks) {
    RankWriter writer(s, rank, out);
    writer.metadata();
    double offset = 0;
    for (std::size_t k = 0; k < steps.size(); ++k) {
      writer.step(steps[k], static_cast<int>(k), offset);
      offset += steps[k].end_s;
    }
  }
  return out + "\n]}\n";
}

std::string gzipped(const std::string& text) {
  constexpr int kGzip = 15 + 16;
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) return {};
  std::string out;
  std::string buffer(1 << 18, '\0');
  std::size_t given = 0;
  int state = Z_OK;
  while (state == Z_OK) {
    const std::size_t part = std::min<std::size_t>(text.size() - given, 1u << 30);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data() + given));
    stream.avail_in = static_cast<uInt>(part);
    given += part;
    do {
      stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
      stream.avail_out = static_cast<uInt>(buffer.size());
      state = deflate(&stream, given == text.size() ? Z_FINISH : Z_NO_FLUSH);
      out.append(buffer.data(), buffer.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  }
  deflateEnd(&stream);
  return out;
}

}  // namespace chokepoint::report
