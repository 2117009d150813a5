// SPDX-License-Identifier: Apache-2.0
// Sort quantization on a CUDA device. With exact thresholds it writes, bit for bit, the payload
// that sort_quantization_code.cpp writes on a CPU. Compiled with --fmad=false; divisions are
// IEEE's.
//
// A radix selection finds the ends of the groups, 8 bits of the keys per pass, for all ranks at
// once. In each pass one kernel counts the next digits of the keys that share a prefix with some
// rank's key, and a small kernel finds the digit that each rank falls into. Blocks count in shared
// memory; lanes of a warp with the same digit (zeros of a ReLU) are counted with one atomic. The
// host only queues kernels.
#include <cuda_runtime.h>

#include <cstdint>

#include "core/codecs/loops/sort_quantization_kernels.h"

namespace {

using Settings = PipewrightSortQuantization;
using Key = unsigned;  // unsigned integers in the order of floats
using Count = unsigned long long;

constexpr int kThreads = 256;
constexpr int kMostRanks = 2 << kPipewrightMostSplit;
constexpr int kDigits = 256, kPasses = 4;
constexpr int kHeader = 8;
constexpr unsigned kWholeWarp = 0xffffffffu;
constexpr float kRounder = 0x1.8p23f;  // rounds to integers, half to even, in its lowest bits

struct Workspace {
  Key prefix[kPasses + 1][kMostRanks];         // known digits of each rank's key, before each pass
  Count rank[kPasses + 1][kMostRanks];         // each rank, among the keys with its prefix
  Count counts[kPasses][kMostRanks][kDigits];  // of digits; one row per distinct prefix
  float high[kMostRanks];
};

__device__ Key key_of(float x) {
  if (x == 0) x = 0;  // −0 becomes 0
  const unsigned bits = __float_as_uint(x);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}

__device__ float value_of(Key key) {
  return __uint_as_float((key >> 31) != 0 ? key & 0x7fffffffu : ~key);
}

/// The row of `counts` that belongs to a rank: ranks ascend, so equal prefixes are adjacent.
__device__ int row_of(const Key* prefix, int rank) {
  int row = 0;
  for (int i = 1; i <= rank; ++i) row += prefix[i] != prefix[i - 1] ? 1 : 0;
  return row;
}

__global__ void set_ranks(Settings settings, Workspace* work) {
  const int i = static_cast<int>(threadIdx.x), groups = 1 << settings.split;
  if (i >= 2 * groups) return;
  const std::int64_t part = settings.n / groups, rest = settings.n % groups, g = (i + 1) / 2;
  const std::int64_t begin =
      g * part + (g < rest ? g : rest);  // of group g; an odd i is the last rank before it
  work->prefix[0][i] = 0;
  work->rank[0][i] = static_cast<Count>(i % 2 == 0 ? begin : begin - 1);
}

/// Counts digits into a row per distinct prefix, first within the block, then globally.
__global__ void count_digits(Settings settings, const float* __restrict__ x, int pass,
                             Workspace* work) {
  __shared__ unsigned counts[kMostRanks * kDigits];
  __shared__ Key prefixes[kMostRanks];
  __shared__ int rows;
  const int ranks = 2 << settings.split;
  for (int i = threadIdx.x; i < kMostRanks * kDigits; i += kThreads) counts[i] = 0;
  if (threadIdx.x == 0) {
    rows = 0;
    for (int i = 0; i < ranks; ++i) {
      const Key prefix = work->prefix[pass][i];
      if (rows == 0 || prefixes[rows - 1] != prefix) prefixes[rows++] = prefix;
    }
  }
  __syncthreads();

  const int low_bits = 24 - 8 * pass;
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  // Whole warps stay in the loop together, as __match_any_sync() needs all lanes.
  for (std::int64_t first = std::int64_t{blockIdx.x} * kThreads; first < settings.n;
       first += step) {
    const std::int64_t i = first + threadIdx.x;
    int counter = -1;
    if (i < settings.n) {
      const Key key = key_of(x[i]);
      const Key prefix = pass == 0 ? 0 : key >> (low_bits + 8);
      int row = 0;
      while (row + 1 < rows && prefixes[row] < prefix) ++row;
      if (prefixes[row] == prefix) counter = row * kDigits + ((key >> low_bits) & (kDigits - 1));
    }
    const unsigned same = __match_any_sync(kWholeWarp, counter);
    const bool speaks = __ffs(same) - 1 == static_cast<int>(threadIdx.x % 32);
    if (counter >= 0 && speaks) atomicAdd(&counts[counter], static_cast<unsigned>(__popc(same)));
  }
  __syncthreads();
  for (int i = threadIdx.x; i < rows * kDigits; i += kThreads)
    if (counts[i] != 0)
      atomicAdd(&work->counts[pass][i / kDigits][i % kDigits], static_cast<Count>(counts[i]));
}

/// Finds the digit that each rank falls into; one block of kDigits threads per rank.
__global__ void advance_ranks(int pass, Workspace* work) {
  __shared__ Count sums[kDigits];
  const int rank = static_cast<int>(blockIdx.x), digit = static_cast<int>(threadIdx.x);
  const Count own = work->counts[pass][row_of(work->prefix[pass], rank)][digit];
  sums[digit] = own;
  __syncthreads();
  for (int distance = 1; distance < kDigits; distance *= 2) {
    const Count before = digit >= distance ? sums[digit - distance] : 0;
    __syncthreads();
    sums[digit] += before;
    __syncthreads();
  }
  const Count wanted = work->rank[pass][rank], below = sums[digit] - own;
  if (below <= wanted && wanted < sums[digit]) {
    work->prefix[pass + 1][rank] = work->prefix[pass][rank] << 8 | static_cast<Key>(digit);
    work->rank[pass + 1][rank] = wanted - below;
  }
}

/// Writes header and table, and zeros to the last 8 bytes, which may be padding. Runs as one warp.
__global__ void write_table(Settings settings, std::int64_t bytes, unsigned char* payload,
                            Workspace* work) {
  const int g = static_cast<int>(threadIdx.x), groups = 1 << settings.split;
  const auto levels = static_cast<float>((1 << settings.bits) - 1);
  float low = 0, high = 0, step = 0;
  if (g < groups) {
    low = value_of(work->prefix[kPasses][2 * g]);
    high = value_of(work->prefix[kPasses][2 * g + 1]);
    step = __fdiv_rn(__fsub_rn(high, low), levels);
  }
  // The least and the greatest value are among the ends, so non-finite values are found here.
  const bool sound = isfinite(low) && isfinite(__fadd_rn(low, __fmul_rn(levels, step)));
  if (__any_sync(kWholeWarp, !sound)) low = step = __uint_as_float(0x7fc00000u);
  if (g < groups) {
    float* const table = reinterpret_cast<float*>(payload + kHeader);
    table[2 * g] = low;
    table[2 * g + 1] = step;
    work->high[g] = high;
  }
  if (g < kHeader) {
    const int header[4] = {1, settings.bits, settings.split, settings.container};
    payload[g] = static_cast<unsigned char>(g < 4 ? header[g] : 0);
    if (settings.n > 0) payload[bytes - kHeader + g] = 0;
  }
}

struct Fields {
  int bits;       // width of a field
  unsigned flip;  // bits of a code to invert
};

__host__ __device__ Fields fields_of(const Settings& settings) {
  const int code = settings.bits + settings.split;
  if (settings.container == 0) return {code, 0};
  return {code <= 8 ? 8 : 16, code == 8 || code == 16 ? 1u << (code - 1) : 0};
}

__device__ unsigned code_of(const Settings& settings, const float* table, const float* high,
                            float x) {
  int group = 0;
  for (int g = 0; g + 1 < 1 << settings.split; ++g) group += x > high[g] ? 1 : 0;
  const float step = table[2 * group + 1];
  const auto levels = static_cast<float>((1 << settings.bits) - 1);
  float level = __fdiv_rn(__fsub_rn(x, table[2 * group]), step > 0 ? step : 1.0f);
  level = level >= 0 ? fminf(level, levels) : 0;  // NaN becomes 0; the table is NaN then
  const unsigned q = __float_as_uint(__fadd_rn(level, kRounder)) - __float_as_uint(kRounder);
  return (static_cast<unsigned>(group) << settings.bits) + q;
}

/// Packs the codes; each thread takes 8 values, whose fields fill whole bytes.
__global__ void write_codes(Settings settings, const float* __restrict__ x, const Workspace* work,
                            unsigned char* payload) {
  __shared__ float table[kMostRanks], high[kMostRanks];
  const int groups = 1 << settings.split;
  if (threadIdx.x < 2 * groups)
    table[threadIdx.x] = reinterpret_cast<const float*>(payload + kHeader)[threadIdx.x];
  if (threadIdx.x < groups) high[threadIdx.x] = work->high[threadIdx.x];
  __syncthreads();
  const Fields fields = fields_of(settings);
  unsigned char* const codes = payload + kHeader + 8 * groups;
  const std::int64_t octets = (settings.n + 7) / 8, step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t octet = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; octet < octets;
       octet += step) {
    const std::int64_t left = settings.n - 8 * octet;
    const int count = left < 8 ? static_cast<int>(left) : 8;
    std::uint64_t words[2] = {0, 0};
    for (int i = 0; i < count; ++i) {
      const std::uint64_t code = code_of(settings, table, high, x[8 * octet + i]) ^ fields.flip;
      const int at = i * fields.bits;
      words[at / 64] |= code << (at % 64);
      if (at / 64 == 0 && at + fields.bits > 64) words[1] |= code >> (64 - at);
    }
    const int bytes = (count * fields.bits + 7) / 8;
    for (int i = 0; i < bytes; ++i)
      codes[octet * fields.bits + i] = static_cast<unsigned char>(words[i / 8] >> (8 * (i % 8)));
  }
}

__global__ void read_codes(Settings settings, const unsigned char* __restrict__ payload,
                           float* __restrict__ x) {
  __shared__ float table[kMostRanks];
  const int groups = 1 << settings.split;
  if (threadIdx.x < 2 * groups)
    table[threadIdx.x] = reinterpret_cast<const float*>(payload + kHeader)[threadIdx.x];
  __syncthreads();
  const Fields fields = fields_of(settings);
  const unsigned char* const codes = payload + kHeader + 8 * groups;
  const unsigned field = fields.bits == 16 ? 0xffffu : (1u << fields.bits) - 1;
  const std::int64_t octets = (settings.n + 7) / 8, step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t octet = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; octet < octets;
       octet += step) {
    const std::int64_t left = settings.n - 8 * octet;
    const int count = left < 8 ? static_cast<int>(left) : 8;
    std::uint64_t words[2] = {0, 0};
    const int bytes = (count * fields.bits + 7) / 8;
    for (int i = 0; i < bytes; ++i)
      words[i / 8] |= static_cast<std::uint64_t>(codes[octet * fields.bits + i]) << (8 * (i % 8));
    for (int i = 0; i < count; ++i) {
      const int at = i * fields.bits;
      std::uint64_t bits = words[at / 64] >> (at % 64);
      if (at / 64 == 0 && at + fields.bits > 64) bits |= words[1] << (64 - at);
      const unsigned code = (static_cast<unsigned>(bits) & field) ^ fields.flip;
      const unsigned group = min(code >> settings.bits, static_cast<unsigned>(groups - 1));
      const auto q = static_cast<float>(code & ((1u << settings.bits) - 1));
      x[8 * octet + i] = __fadd_rn(table[2 * group], __fmul_rn(q, table[2 * group + 1]));
    }
  }
}

std::int64_t payload_bytes(const Settings& settings) {
  const std::int64_t field = fields_of(settings).bits;
  const std::int64_t codes = settings.n / 8 * field + (settings.n % 8 * field + 7) / 8;
  return kHeader + (std::int64_t{8} << settings.split) + (codes + 7) / 8 * 8;
}

unsigned blocks_for(std::int64_t threads) {
  const std::int64_t blocks = (threads + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < 2048 ? blocks : 2048);
}

}  // namespace

std::int64_t pipewright_sort_quantization_workspace(const Settings*) {
  return sizeof(Workspace);
}

int pipewright_sort_quantization_encode(const Settings* settings, const float* x,
                                        unsigned char* payload, void* workspace, void* stream) {
  if (const cudaError_t error = cudaSetDevice(settings->device)) return static_cast<int>(error);
  const auto queue = static_cast<cudaStream_t>(stream);
  auto* const work = static_cast<Workspace*>(workspace);
  const unsigned ranks = 2u << settings->split;
  cudaMemsetAsync(workspace, 0, sizeof(Workspace), queue);
  set_ranks<<<1, kMostRanks, 0, queue>>>(*settings, work);
  for (int pass = 0; pass < kPasses; ++pass) {
    count_digits<<<blocks_for((settings->n + 15) / 16), kThreads, 0, queue>>>(*settings, x, pass,
                                                                              work);
    advance_ranks<<<ranks, kDigits, 0, queue>>>(pass, work);
  }
  write_table<<<1, 32, 0, queue>>>(*settings, payload_bytes(*settings), payload, work);
  write_codes<<<blocks_for((settings->n + 7) / 8), kThreads, 0, queue>>>(*settings, x, work,
                                                                         payload);
  return static_cast<int>(cudaGetLastError());
}

int pipewright_sort_quantization_decode(const Settings* settings, const unsigned char* payload,
                                        float* x, void* stream) {
  if (const cudaError_t error = cudaSetDevice(settings->device)) return static_cast<int>(error);
  read_codes<<<blocks_for((settings->n + 7) / 8), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      *settings, payload, x);
  return static_cast<int>(cudaGetLastError());
}
