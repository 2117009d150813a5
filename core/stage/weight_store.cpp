// SPDX-License-Identifier: Apache-2.0
#include "core/stage/weight_store.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/optim/bfloat16_copy.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

/// A tensor over the memory of `flat`, which point() can make one over other memory.
at::Tensor live_view(const at::Tensor& flat) {
  if (flat.is_meta()) return flat;  // meta tensors have no memory to exchange
  const c10::Storage storage(c10::Storage::use_byte_size_t(), flat.nbytes(),
                             at::DataPtr(flat.mutable_data_ptr(), flat.device()), nullptr, false);
  return at::empty({0}, flat.options()).set_(storage, 0, {flat.numel()}, {1});
}

void point(const at::Tensor& live, const at::Tensor& flat) {
  live.storage().unsafeGetStorageImpl()->set_data_ptr_noswap(
      at::DataPtr(flat.mutable_data_ptr(), flat.device()));
}

/// Writes elements [begin, end) of the copy of a flat tensor on the CPU.
void write_bfloat16(const at::Tensor& flat, const at::Tensor& copy, std::int64_t begin,
                    std::int64_t end) {
  copy_to_bfloat16(flat.const_data_ptr<float>() + begin, static_cast<std::size_t>(end - begin),
                   static_cast<std::uint16_t*>(copy.mutable_data_ptr()) + begin);
}

}  // namespace

FlatLayout flat_layout(const NamedShapes& shapes, std::int64_t bytes_per_element) {
  const std::int64_t boundary = 64 / bytes_per_element;
  FlatLayout layout;
  for (const auto& [name, shape] : shapes) {
    std::int64_t size = 1;
    for (const std::int64_t extent : shape) size *= extent;
    layout.entries.push_back({.name = name, .shape = shape, .offset = layout.size, .size = size});
    layout.size += (size + boundary - 1) / boundary * boundary;
  }
  return layout;
}

WeightStore::WeightStore(const FlatLayout& layout, const at::TensorOptions& options,
                         std::optional<at::ScalarType> narrow, int earlier)
    : narrow_(narrow), earlier_(earlier) {
  versions_.push_back({{0, 0, 0}, at::zeros({layout.size}, options), {}});
  Version& first = versions_.front();
  live_ = live_view(first.flat);
  if (narrow_) {
    first.copy = at::zeros({layout.size}, options.dtype(*narrow_));
    live_copy_ = live_view(first.copy);
  }
  for (const FlatLayout::Entry& entry : layout.entries)
    leaves_.push_back(
        entry.view(narrow_ && !entry.exact ? live_copy_ : live_).detach().set_requires_grad(true));
  installed_ = first.flat.const_data_ptr();
}

void WeightStore::install(const WeightKey& key) {
  point_to(versions_[find(key)]);
}

void WeightStore::point_to(const Version& version) {
  if (version.flat.const_data_ptr() == installed_) return;
  point(live_, version.flat);
  if (narrow_) point(live_copy_, version.copy);
  installed_ = version.flat.const_data_ptr();
}

at::Tensor& WeightStore::scratch() {
  if (!scratch_) scratch_ = memory_for({});
  return scratch_->flat;
}

void WeightStore::install_scratch() {
  if (narrow_) write_copy(*scratch_);
  point_to(*scratch_);
}

void WeightStore::install_other(const at::Tensor& flat) {
  if (narrow_ && !other_copy_.defined()) other_copy_ = at::zeros_like(versions_.front().copy);
  const Version other{{}, flat, other_copy_};
  if (narrow_) write_copy(other);
  installed_ = nullptr;
  point_to(other);
  installed_ = nullptr;  // a version made later may have the address of these weights
}

void WeightStore::copy(const WeightKey& key) {
  write_copy(versions_[find(key)]);
}

void WeightStore::write_copy(const Version& version) const {
  if (version.flat.is_cpu() && *narrow_ == at::kBFloat16)
    write_bfloat16(version.flat, version.copy, 0, version.flat.numel());
  else
    version.copy.copy_(version.flat);
}

void WeightStore::copy(const WeightKey& key, std::int64_t begin, std::int64_t end) {
  const Version& version = versions_[find(key)];
  write_bfloat16(version.flat, version.copy, begin, end);
}

const at::Tensor& WeightStore::version(const WeightKey& key) const {
  return versions_[find(key)].flat;
}

void WeightStore::take_turns(int versions) {
  while (static_cast<int>(versions_.size() + spare_.size()) < versions)
    spare_.push_back(memory_for({}));
}

void WeightStore::add_addresses(std::vector<std::uintptr_t>& all) const {
  for (const std::vector<Version>* of : {&versions_, &spare_})
    for (const Version& each : *of)
      all.push_back(reinterpret_cast<std::uintptr_t>(each.flat.const_data_ptr()));
}

at::Tensor& WeightStore::add_prediction(const WeightKey& key) {
  return add(key).flat;
}

WeightStore::Advance WeightStore::advance(bool in_place) {
  const std::size_t from = find({latest_, 0, 0});
  ++latest_;
  if (in_place) {
    versions_[from].key.version = latest_;
    return {versions_[from].flat, versions_[from].flat};
  }
  const at::Tensor old = versions_[from].flat;
  return {old, add({latest_, 0, 0}).flat};
}

void WeightStore::free(const WeightKey& key) {
  const std::size_t at = find(key);
  spare_.push_back(std::move(versions_[at]));
  versions_.erase(versions_.begin() + static_cast<std::ptrdiff_t>(at));
}

void WeightStore::rewind() {
  std::erase_if(versions_, [&](const Version& each) {  // earlier ones that no pass has read
    return each.key.version < std::min(0, latest_ - earlier_);
  });
  for (Version& each : versions_) each.key.version -= latest_;
  latest_ = 0;
  spare_.clear();
  installed_ = nullptr;  // a version made later may have the address of one freed here
  if (earlier_ > 0 && copies() == 1) {
    add_earlier();
    for (int before = 1; before <= earlier_; ++before) earlier_version(before).copy_(latest());
  }
  PIPEWRIGHT_CHECK(copies() == 1 + earlier_, copies(), " versions are left after a schedule");
  if (!narrow_) return;
  for (const Version& each : versions_) copy(each.key);
}

void WeightStore::add_earlier() {
  for (int before = 1; before <= earlier_; ++before) add({latest_ - before, 0, 0});
}

std::size_t WeightStore::find(const WeightKey& key) const {
  for (std::size_t i = 0; i < versions_.size(); ++i)
    if (versions_[i].key == key) return i;
  PIPEWRIGHT_CHECK(false, "no version ", key.version, " predicted ", key.ahead, " ahead");
  return 0;
}

WeightStore::Version& WeightStore::add(const WeightKey& key) {
  if (spare_.empty()) {
    versions_.push_back(memory_for(key));
  } else {
    versions_.push_back(std::move(spare_.front()));
    versions_.back().key = key;
    spare_.erase(spare_.begin());
  }
  most_copies_ = std::max(most_copies_, copies());
  return versions_.back();
}

WeightStore::Version WeightStore::memory_for(const WeightKey& key) const {
  const Version& like = versions_.front();
  return {key, at::zeros_like(like.flat),  // zeros, as the gaps must be
          narrow_ ? at::zeros_like(like.copy) : at::Tensor()};
}

}  // namespace pipewright
