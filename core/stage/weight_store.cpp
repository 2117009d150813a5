// SPDX-License-Identifier: Apache-2.0
#include "core/stage/weight_store.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/stage/torch.h"

namespace pipewright {

FlatLayout flat_layout(const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& shapes,
                       std::int64_t bytes_per_element) {
  const std::int64_t boundary = 64 / bytes_per_element;
  FlatLayout layout;
  for (const auto& [name, shape] : shapes) {
    std::int64_t size = 1;
    for (const std::int64_t extent : shape) size *= extent;
    layout.entries.push_back({name, shape, layout.size, size});
    layout.size += (size + boundary - 1) / boundary * boundary;
  }
  return layout;
}

WeightStore::WeightStore(const FlatLayout& layout, const at::TensorOptions& options) {
  add({0, 0, 0}, at::zeros({layout.size}, options));
  const at::Tensor& first = versions_.front().flat;
  live_ = first;
  if (!first.is_meta()) {  // meta tensors have no memory to exchange
    const c10::Storage storage(c10::Storage::use_byte_size_t(), first.nbytes(),
                               at::DataPtr(first.mutable_data_ptr(), first.device()), nullptr,
                               false);
    live_ = at::empty({0}, options).set_(storage, 0, {layout.size}, {1});
  }
  for (const FlatLayout::Entry& entry : layout.entries)
    leaves_.push_back(live_.narrow(0, entry.offset, entry.size)
                          .view(entry.shape)
                          .detach()
                          .set_requires_grad(true));
  installed_ = first.const_data_ptr();
}

void WeightStore::install(const WeightKey& key) {
  const at::Tensor& flat = versions_[find(key)].flat;
  if (flat.const_data_ptr() == installed_) return;
  live_.storage().unsafeGetStorageImpl()->set_data_ptr_noswap(
      at::DataPtr(flat.mutable_data_ptr(), flat.device()));
  installed_ = flat.const_data_ptr();
}

const at::Tensor& WeightStore::version(const WeightKey& key) const {
  return versions_[find(key)].flat;
}

at::Tensor& WeightStore::add_prediction(const WeightKey& key) {
  add(key, take_memory());
  return versions_.back().flat;
}

WeightStore::Advance WeightStore::advance(bool in_place) {
  const std::size_t from = find({latest_, 0, 0});
  ++latest_;
  if (in_place) {
    versions_[from].key.version = latest_;
    return {versions_[from].flat, versions_[from].flat};
  }
  const at::Tensor old = versions_[from].flat;
  add({latest_, 0, 0}, take_memory());
  return {old, versions_.back().flat};
}

void WeightStore::free(const WeightKey& key) {
  const std::size_t at = find(key);
  spare_.push_back(std::move(versions_[at].flat));
  versions_.erase(versions_.begin() + static_cast<std::ptrdiff_t>(at));
}

void WeightStore::rewind() {
  PIPEWRIGHT_CHECK(versions_.size() == 1, versions_.size(), " versions are left after a schedule");
  versions_.front().key = {0, 0, 0};
  latest_ = 0;
  spare_.clear();
}

std::size_t WeightStore::find(const WeightKey& key) const {
  for (std::size_t i = 0; i < versions_.size(); ++i)
    if (versions_[i].key == key) return i;
  PIPEWRIGHT_CHECK(false, "no version ", key.version, " predicted ", key.ahead, " ahead");
  return 0;
}

at::Tensor WeightStore::take_memory() {
  if (spare_.empty()) return at::zeros_like(versions_.front().flat);  // zeros, as the gaps must be
  at::Tensor memory = std::move(spare_.back());
  spare_.pop_back();
  return memory;
}

void WeightStore::add(const WeightKey& key, at::Tensor flat) {
  versions_.push_back({key, std::move(flat)});
  most_copies_ = std::max(most_copies_, copies());
}

}  // namespace pipewright
