// SPDX-License-Identifier: Apache-2.0
#include "core/codecs/sample_memory.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/tensors/torch.h"
#include "core/tensors/upload.h"

namespace pipewright {
namespace {

constexpr double kLargestOfHalf = 65504;

at::Tensor index_of(const std::vector<std::int64_t>& places, at::Device device) {
  return upload(at::tensor(places, at::kLong), device);
}

at::Tensor narrowed(const at::Tensor& x, at::ScalarType type) {
  return type == at::kHalf ? x.clamp(-kLargestOfHalf, kLargestOfHalf).to(type) : x;
}

const at::Tensor& find(const NamedTensors& state, const std::string& name) {
  const auto found = std::ranges::find(state, name, &NamedTensors::value_type::first);
  if (found == state.end())
    throw Error(ErrorKind::Data, concat("a codec's state has no tensor '", name, "'"));
  return found->second;
}

}  // namespace

bool has_samples(at::IntArrayRef sizes, const CodecCall& call) {
  return !sizes.empty() && !call.samples.empty() &&
         sizes[0] == static_cast<std::int64_t>(call.samples.size());
}

std::string sizes_text(at::IntArrayRef sizes) {
  std::string text;
  for (const std::int64_t size : sizes) text += concat(text.empty() ? "" : "x", size);
  return text;
}

SampleMemory::Shelf* SampleMemory::shelf(at::IntArrayRef row, at::Device device) {
  const auto found = shelves_.find(row.vec());
  if (found == shelves_.end()) return nullptr;
  found->second.rows = found->second.rows.to(device);
  return &found->second;
}

bool SampleMemory::has(std::int64_t sample, at::IntArrayRef row) const {
  const auto found = shelves_.find(row.vec());
  return found != shelves_.end() && found->second.places.contains(sample);
}

at::Tensor SampleMemory::rows(std::span<const std::int64_t> samples, at::IntArrayRef row,
                              at::Device device) {
  std::vector<std::int64_t> known, places;
  Shelf* const own = shelf(row, device);
  for (std::size_t i = 0; own != nullptr && i < samples.size(); ++i)
    if (const auto place = own->places.find(samples[i]); place != own->places.end()) {
      known.push_back(static_cast<std::int64_t>(i));
      places.push_back(place->second);
    }
  std::vector<std::int64_t> sizes{static_cast<std::int64_t>(samples.size())};
  sizes.insert(sizes.end(), row.begin(), row.end());
  const at::TensorOptions options = at::TensorOptions(at::kFloat).device(device);
  if (known.empty()) return at::zeros(sizes, options);
  const at::Tensor remembered = own->rows.index_select(0, index_of(places, device)).to(at::kFloat);
  if (known.size() == samples.size()) return remembered;
  return at::zeros(sizes, options).index_copy_(0, index_of(known, device), remembered);
}

SampleMemory::Shelf& SampleMemory::with_places(std::span<const std::int64_t> samples,
                                               const at::Tensor& rows) {
  const at::IntArrayRef row = rows.sizes().slice(1);
  Shelf* own = shelf(row, rows.device());
  if (own == nullptr) own = &shelves_[row.vec()];
  for (const std::int64_t sample : samples)
    own->places.try_emplace(sample, static_cast<std::int64_t>(own->places.size()));
  const std::int64_t held = own->rows.defined() ? own->rows.size(0) : 0;
  const auto needed = static_cast<std::int64_t>(own->places.size());
  if (needed > held) {
    std::vector<std::int64_t> sizes{std::max(needed, 2 * held) - held};
    sizes.insert(sizes.end(), row.begin(), row.end());
    const at::Tensor more = at::zeros(sizes, rows.options().dtype(type_));
    own->rows = held == 0 ? more : at::cat({own->rows, more});
  }
  return *own;
}

void SampleMemory::keep(std::span<const std::int64_t> samples, const at::Tensor& rows) {
  if (samples.empty()) return;
  Shelf& own = with_places(samples, rows);
  std::map<std::int64_t, std::int64_t> last;  // place → row
  for (std::size_t i = 0; i < samples.size(); ++i)
    last[own.places.at(samples[i])] = static_cast<std::int64_t>(i);
  std::vector<std::int64_t> places, chosen;
  for (const auto& [place, row] : last) {
    places.push_back(place);
    chosen.push_back(row);
  }
  const at::Tensor where = index_of(places, rows.device());
  const at::Tensor fresh = narrowed(rows.index_select(0, index_of(chosen, rows.device())), type_);
  own.rows.index_copy_(0, where,
                       at::where(fresh.isfinite(), fresh, own.rows.index_select(0, where)));
}

void SampleMemory::multiply(double factor) {
  for (auto& [row, own] : shelves_) own.rows.mul_(factor);
}

at::Tensor SampleMemory::rounded(const at::Tensor& rows) const {
  return narrowed(rows, type_).to(at::kFloat);
}

NamedTensors SampleMemory::state() const {
  NamedTensors state;
  for (const auto& [row, own] : shelves_) {
    std::vector<std::int64_t> samples, places;
    for (const auto& [sample, place] : own.places) {
      samples.push_back(sample);
      places.push_back(place);
    }
    const std::string name = sizes_text(row);
    state.emplace_back("samples." + name, at::tensor(samples, at::kLong));
    state.emplace_back("rows." + name,
                       own.rows.index_select(0, index_of(places, own.rows.device())));
  }
  return state;
}

void SampleMemory::restore(const NamedTensors& state) {
  shelves_.clear();
  for (const auto& [name, samples] : state) {
    if (!name.starts_with("samples.")) continue;
    const std::string sizes = name.substr(8);
    const at::Tensor& rows = find(state, "rows." + sizes);
    if (samples.dim() != 1 || samples.scalar_type() != at::kLong || rows.dim() < 1 ||
        rows.size(0) != samples.size(0) || sizes_text(rows.sizes().slice(1)) != sizes)
      throw Error(ErrorKind::Data, concat("a codec's state has ", rows.size(0),
                                          " rows that do not fit its '", name, "'"));
    Shelf& own = shelves_[rows.sizes().slice(1).vec()];
    own.rows = rows.to(type_).clone();
    const at::Tensor host = samples.cpu();
    for (std::int64_t i = 0; i < host.size(0); ++i)
      own.places.emplace(host.const_data_ptr<std::int64_t>()[i], i);
  }
}

}  // namespace pipewright
