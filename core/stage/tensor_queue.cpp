// SPDX-License-Identifier: Apache-2.0
#include "core/stage/tensor_queue.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

const at::Tensor* find(const NamedTensors& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &NamedTensors::value_type::first);
  return found == all.end() ? nullptr : &found->second;
}

/// The numbers of an I64 tensor [n].
std::vector<std::int64_t> numbers_of(const std::string& name, const at::Tensor& tensor) {
  if (tensor.dim() != 1 || tensor.scalar_type() != at::kLong)
    throw Error(ErrorKind::Data, concat("tensor '", name, "' is no list of whole numbers"));
  const at::Tensor here = tensor.contiguous();
  return {here.const_data_ptr<std::int64_t>(), here.const_data_ptr<std::int64_t>() + here.numel()};
}

}  // namespace

std::int64_t TensorQueue::lists() const {
  return std::ranges::count_if(lists_, [](const auto& list) { return list.has_value(); });
}

/// Copies, because a gradient may share memory with a message or another gradient.
void TensorQueue::push(const std::optional<List>& newest) {
  std::optional<List>& added = lists_.emplace_back();
  if (!newest) return;
  added.emplace();
  for (const at::Tensor& tensor : *newest)
    added->push_back(tensor.defined() ? tensor.clone() : tensor);
}

std::optional<TensorQueue::List> TensorQueue::pop() {
  std::optional<List> first = std::move(lists_.front());
  lists_.pop_front();
  return first;
}

NamedTensors TensorQueue::state() const {
  NamedTensors all;
  std::vector<std::int64_t> has;
  for (const auto& list : lists_) has.push_back(list.has_value() ? 1 : 0);
  all.emplace_back(kind_ + ".lists", at::tensor(has, at::kLong));
  for (std::size_t item = 0; item < items_.size(); ++item) {
    List tensors;
    std::vector<std::int64_t> places;
    for (std::size_t place = 0; place < lists_.size(); ++place)
      if (lists_[place] && (*lists_[place])[item].defined()) {
        tensors.push_back((*lists_[place])[item]);
        places.push_back(static_cast<std::int64_t>(place));
      }
    if (tensors.empty()) continue;
    all.emplace_back(concat(kind_, ".places/", items_[item].name), at::tensor(places, at::kLong));
    all.emplace_back(concat(kind_, "/", items_[item].name), at::stack(tensors));
  }
  return all;
}

void TensorQueue::restore(const NamedTensors& saved) {
  const at::Tensor* const lists = find(saved, kind_ + ".lists");
  if (lists == nullptr) return;
  restore_places(*lists);
  for (std::size_t item = 0; item < items_.size(); ++item) {
    const at::Tensor* const tensors = find(saved, concat(kind_, "/", items_[item].name));
    const at::Tensor* const places = find(saved, concat(kind_, ".places/", items_[item].name));
    if (tensors != nullptr && places != nullptr) restore_item(item, *places, *tensors);
  }
}

void TensorQueue::restore_places(const at::Tensor& lists) {
  const std::string name = kind_ + ".lists";
  const std::vector<std::int64_t> has = numbers_of(name, lists);
  if (has.size() > longest_ || (!lists_.empty() && lists_.size() != has.size()))
    throw Error(ErrorKind::Data, concat("tensor '", name, "' has ", has.size(),
                                        " places; expected ", lists_.empty() ? "at most " : "",
                                        lists_.empty() ? longest_ : lists_.size()));
  lists_.resize(has.size());
  for (std::size_t place = 0; place < has.size(); ++place)
    if (has[place] != 0 && !lists_[place]) lists_[place].emplace(items_.size());
}

void TensorQueue::restore_item(std::size_t item, const at::Tensor& places,
                               const at::Tensor& tensors) {
  const std::string& name = items_[item].name;
  const std::vector<std::int64_t> numbers = numbers_of(concat(kind_, ".places/", name), places);
  std::vector<std::int64_t> expected{static_cast<std::int64_t>(numbers.size())};
  expected.insert(expected.end(), items_[item].shape.begin(), items_[item].shape.end());
  if (tensors.sizes() != at::IntArrayRef(expected))
    throw Error(ErrorKind::Data,
                concat("tensor '", kind_, "/", name, "' has shape ", list_text(tensors.sizes()),
                       "; this experiment's has ", list_text(expected)));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto place = static_cast<std::size_t>(numbers[i]);
    if (place >= lists_.size() || !lists_[place])
      throw Error(ErrorKind::Data, concat("tensor '", kind_, ".places/", name, "' has ", numbers[i],
                                          "; expected the number of a place with a list"));
    (*lists_[place])[item] =
        tensors[static_cast<std::int64_t>(i)].to(options_, /*non_blocking=*/false, /*copy=*/true);
  }
}

std::string TensorQueue::missing() const {
  for (const auto& list : lists_)
    for (std::size_t item = 0; item < items_.size(); ++item)
      if (!list || !(*list)[item].defined()) return concat(kind_, "/", items_[item].name);
  return {};
}

}  // namespace pipewright
