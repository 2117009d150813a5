// SPDX-License-Identifier: Apache-2.0
// Every codec, with the options that unit tests have, given frames from a wire. A frame that is
// taken gives the tensor that its header says; this tensor is encoded and decoded by new ends, and
// arrives with the same sizes and type: with the same bits where it travels raw.
//
// The first byte of an input chooses among the options of the codec that the frame names.
#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

#include "core/base/random.h"
#include "core/codecs/edge_coding.h"
#include "core/tensors/torch.h"
#include "tests/fuzz/target.h"
#include "tests/unit/codecs/codec_trial.h"

namespace pipewright::fuzz {
namespace {

constexpr std::int64_t kMostValues = 1 << 14;  ///< that cross the edge

struct Row {
  std::string name;
  std::unique_ptr<Codec> codec;
};

Row made(const testing::TestedCodec& tested) {
  Problems problems;
  const Value value = parse_yaml(tested.options, "codec.yaml");
  Options options(&value, "codec", problems);
  Row row{tested.name, Registry<Codec>::instance().find(tested.name)->make(options)};
  options.finish();
  problems.throw_if_any();
  return row;
}

/// The codec of that tag, with one of its options.
const Row& row_of(std::uint16_t tag, std::size_t choice) {
  static const std::vector<Row> rows = [] {
    std::vector<Row> all;
    for (const testing::TestedCodec& tested : testing::kTestedCodecs) all.push_back(made(tested));
    return all;
  }();
  std::vector<const Row*> found;
  for (const Row& row : rows)
    if (codec_tag(row.name) == tag) found.push_back(&row);
  if (found.empty()) throw Error(ErrorKind::Data, "names no codec");
  return *found[choice % found.size()];
}

std::span<const std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
}

std::string hash_of(const at::Tensor& tensor) {
  const auto bytes = bytes_of(tensor);
  return std::to_string(stable_hash({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return std::ranges::equal(bytes_of(a), bytes_of(b));
}

void check_there_and_back(const Row& row, const at::Tensor& x, const CodecCall& call) {
  const auto sender = row.codec->coder(), receiver = row.codec->coder();
  const Encoded encoded = encode(*sender, row.name, x, call);
  const FrameHeader header = read_header(bytes_of(encoded.bytes));
  const at::Tensor y = decode(*receiver, row.name, encoded, call, kMostValues);
  require(y.sizes() == x.sizes() && y.scalar_type() == x.scalar_type(),
          row.name + " gives a tensor of another form");
  require(!header.raw || same_bits(x, y), row.name + " sends raw values and others arrive");
  const at::Tensor lost = at::logical_and(at::isfinite(x).logical_not(), at::isfinite(y));
  require(!lost.any().item<bool>(), row.name + " loses what is not finite");
  const auto said = row.codec->payload_bytes(x.sizes());
  require(header.raw || !said || *said == header.payload,
          row.name + " makes another number of bytes than it says");
}

std::string read(std::string_view bytes) {
  constexpr std::size_t kTagEnds = 8;
  if (bytes.size() < 1 + kTagEnds) throw Error(ErrorKind::Data, "too short to fuzz");
  const std::string_view frame = bytes.substr(1);
  std::uint16_t tag = 0;
  std::memcpy(&tag, frame.data() + kTagEnds - sizeof tag, sizeof tag);
  const Row& row = row_of(tag, static_cast<std::uint8_t>(bytes[0]));

  at::Tensor tensor = at::empty({std::ssize(frame)}, at::kByte);
  std::memcpy(tensor.mutable_data_ptr(), frame.data(), frame.size());
  const FrameHeader header = read_header(bytes_of(tensor));
  std::vector<std::int64_t> samples;
  if (row.codec->by_sample() && !header.sizes.empty())
    samples.resize(static_cast<std::size_t>(std::min(header.sizes[0], kMostValues)));
  std::iota(samples.begin(), samples.end(), 0);
  const CodecCall call{.samples = samples};

  const auto coder = row.codec->coder();
  const at::Tensor x = decode(*coder, row.name, {tensor, {}}, call, kMostValues);
  require(x.sizes() == at::IntArrayRef(header.sizes), "the tensor has other sizes than the frame");
  require(x.element_size() == size_of(header.type) && x.is_contiguous(),
          "the tensor has another type, or is not contiguous");
  reread([&] { check_there_and_back(row, x, call); });
  return concat(row.name, ' ', x.numel(), " values ", hash_of(x));
}

/// Values of several steps of each codec at once; svd asks for work space.
std::size_t most_memory(std::string_view bytes) {
  return (std::size_t{8} << 20) + 8 * 8 * 16 * bytes.size();
}

}  // namespace

const Target kTarget{
    .read = read, .most_memory = most_memory, .most_bytes = 8192, .rounds = 10'000};

}  // namespace pipewright::fuzz
