// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/device/fake_device.h"

#include <ATen/EmptyTensor.h>
#include <ATen/NativeFunctions.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <array>
#include <atomic>
#include <cstring>

#include "core/tensors/torch.h"
#include "tests/unit/device/fake_graphs.h"

namespace pipewright::test {
namespace {

constexpr at::DeviceType kFake = at::kPrivateUse1;
constexpr int kDevices = 2, kPool = 32, kHandles = 1 << 16;

StreamModel& model() {
  return StreamModel::instance();
}

std::atomic<int> questions = 0;
thread_local at::DeviceIndex current = 0;
thread_local std::array<c10::StreamId, kDevices> streams{};

StreamModel::Stream key(const c10::Stream& stream) {
  return {stream.device_index(), stream.id()};
}
StreamModel::Stream current_key(at::Device device) {
  return {device.index(), streams[static_cast<std::size_t>(device.index())]};
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  at::DeviceType type() const override { return kFake; }
  at::Device exchangeDevice(at::Device device) const override {
    return {kFake, std::exchange(current, device.index())};
  }
  at::Device getDevice() const override { return {kFake, current}; }
  void setDevice(at::Device device) const override { current = device.index(); }
  void uncheckedSetDevice(at::Device device) const noexcept override { current = device.index(); }
  c10::Stream getStream(at::Device device) const override {
    return c10::Stream(c10::Stream::UNSAFE, device, current_key(device).second);
  }
  c10::Stream getStreamFromGlobalPool(at::Device device, bool high_priority) const override {
    static std::array<std::atomic<int>, 2> given{};
    const int number = given[high_priority ? 1 : 0]++ % kPool;
    return c10::Stream(c10::Stream::UNSAFE, device, 1 + number + (high_priority ? kPool : 0));
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const c10::Stream before = getStream(stream.device());
    streams[static_cast<std::size_t>(stream.device_index())] = stream.id();
    return before;
  }
  void* getStreamNativeHandle(const c10::Stream stream) const override {
    return reinterpret_cast<void*>(stream.device_index() * kHandles + stream.id() + 1);
  }
  at::DeviceIndex deviceCount() const noexcept override { return kDevices; }
  void record(void** event, const c10::Stream& stream, at::DeviceIndex index,
              c10::EventFlag) const override {
    destroyEvent(*event, index);
    *event = new StreamModel::Clock(model().record(key(stream)));
  }
  void block(void* event, const c10::Stream& stream) const override {
    model().block(key(stream), clock_of(event));
  }
  void destroyEvent(void* event, at::DeviceIndex) const noexcept override {
    delete static_cast<StreamModel::Clock*>(event);
  }
  bool queryEvent(void* event) const override {
    if (++questions % 3 != 0) return false;
    model().wait_on_host(clock_of(event));
    return true;
  }
  void synchronizeEvent(void* event) const override { model().wait_on_host(clock_of(event)); }
  void synchronizeStream(const c10::Stream& stream) const override {
    model().wait_on_host(model().record(key(stream)));
  }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    model().announce(data.get(), key(stream));
  }
  static const StreamModel::Clock& clock_of(void* event) {
    return *static_cast<StreamModel::Clock*>(event);
  }
};

/// Of the current device, for its current stream; of the pool of graphs while there is one.
struct Allocator final : at::Allocator {
  at::DataPtr allocate(std::size_t bytes) override {
    FakePool* const pool = FakeGraphs::pool();
    auto* const memory = new at::DataPtr(pool != nullptr ? pool->allocate(bytes)
                                                         : at::getCPUAllocator()->allocate(bytes));
    const at::Device device(kFake, current);
    if (bytes > 0) model().allocate(memory->get(), bytes, current_key(device));
    return {memory->get(), memory, &give_back, device};
  }
  static void give_back(void* context) {
    auto* const memory = static_cast<at::DataPtr*>(context);
    model().free(memory->get());
    delete memory;
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
};
Allocator allocator;

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(at::DeviceIndex) const override { return true; }
  at::DeviceIndex deviceCount() const override { return kDevices; }
  at::Allocator* getPinnedMemoryAllocator() const override { return at::getCPUAllocator(); }
};

bool fake(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == kFake;
}
const void* memory_of(const at::Tensor& tensor) {
  return tensor.storage().data();
}

/// The same memory as a tensor of the CPU.
at::Tensor on_cpu(const at::Tensor& tensor) {
  if (!fake(tensor)) return tensor;
  return at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(),
                       at::TensorOptions(tensor.scalar_type()));
}

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> type,
                 std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard(device.value_or(at::Device(kFake, current)));
  return at::detail::empty_generic(size, &allocator,
                                   c10::DispatchKeySet(at::DispatchKey::PrivateUse1),
                                   type.value_or(at::kFloat), format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride,
                         std::optional<at::ScalarType> type, std::optional<at::Layout>,
                         std::optional<at::Device> device, std::optional<bool>) {
  const c10::DeviceGuard guard(device.value_or(at::Device(kFake, current)));
  return at::detail::empty_strided_generic(size, stride, &allocator,
                                           c10::DispatchKeySet(at::DispatchKey::PrivateUse1),
                                           type.value_or(at::kFloat));
}

/// As LibTorch copies between GPUs: on the source's current stream, both devices' streams waiting
/// for each other.
void copy_between(const at::Tensor& from, const at::Tensor& to) {
  const auto source = current_key(from.device()), target = current_key(to.device());
  const std::array<const void*, 1> read{memory_of(from)}, write{memory_of(to)};
  model().block(source, model().record(target));
  model().work(source, read, write);
  model().block(target, model().record(source));
  const auto copy = [from = on_cpu(from), to = on_cpu(to)] { to.copy_(from); };
  if (FakeGraphs* const graphs = FakeGraphs::recording()) {
    graphs->keep(to);
    graphs->add(copy);
  }
  copy();
}

void copy_to_host(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  const auto stream = current_key(from.device());
  const std::array<const void*, 1> read{memory_of(from)};
  model().work(stream, read, {});
  FakeGraphs::refuse("a copy to the host");
  const at::Tensor value = on_cpu(from).clone();
  to.fill_(to.scalar_type() == at::kByte ? 0xa5 : -1e9);  // what who does not wait reads
  model().later(stream, [to, value] { to.copy_(value); });
  if (!non_blocking) model().wait_on_host(model().record(stream));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  if (fake(from) && fake(to)) {
    copy_between(from, to);
  } else if (fake(from)) {
    copy_to_host(from, to, non_blocking);
  } else {
    FakeGraphs::refuse("a copy from the host");
    const auto stream = current_key(to.device());
    const std::array<const void*, 1> write{memory_of(to)};
    model().work(stream, {}, write);
    model().catch_up(stream);  // `from` may be what an earlier copy to the host writes
    on_cpu(to).copy_(from);
    if (!non_blocking) model().wait_on_host(model().record(stream));
  }
  return to;
}

at::Scalar local_scalar(const at::Tensor& tensor) {
  FakeGraphs::refuse("a number read by the host");
  const auto stream = current_key(tensor.device());
  const std::array<const void*, 1> read{memory_of(tensor)};
  model().work(stream, read, {});
  model().wait_on_host(model().record(stream));
  return on_cpu(tensor).item();
}

/// One call of an operator: its tensors become the CPU's on the way in, ours on the way out.
class Call {
 public:
  explicit Call(const c10::OperatorHandle& op) : op_(op) {}

  void run(torch::jit::Stack* stack) {
    const auto& arguments = op_.schema().arguments();
    const std::size_t first = stack->size() - arguments.size();
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const auto* const alias = arguments[i].alias_info();
      // Batch norm writes its statistics, which its schema does not say.
      take((*stack)[first + i],
           (alias != nullptr && alias->isWrite()) || arguments[i].name().starts_with("running_"));
    }
    TORCH_CHECK(!ours_.empty(), op_.schema(), " without a tensor of the device");
    const auto stream = current_key(ours_.front().device());
    model().work(stream, reads_, writes_);
    FakeGraphs* const graphs = FakeGraphs::recording();
    torch::jit::Stack taken;
    if (graphs != nullptr) {
      taken.assign(stack->end() - std::ssize(arguments), stack->end());
      for (std::size_t i = 0; i < ours_.size(); ++i)
        if (written_[i]) graphs->keep(ours_[i]);
    }
    op_.redispatchBoxed(c10::DispatchKeySet(at::DispatchKey::CPU), stack);
    const std::size_t results = op_.schema().returns().size(), begin = stack->size() - results;
    for (std::size_t i = 0; i < results; ++i) give((*stack)[begin + i], i);
    if (graphs != nullptr)
      graphs->add([op = op_, taken = std::move(taken), made = std::move(made_)] {
        torch::jit::Stack again = taken;
        op.redispatchBoxed(c10::DispatchKeySet(at::DispatchKey::CPU), &again);
        for (const auto& [result, own] : made) own.copy_(again[result].toTensor());
      });
  }

 private:
  void take(c10::IValue& value, bool written) {
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector())
        list.push_back(taken(tensor, written));
      value = list;
    } else if (value.isTensor()) {
      value = taken(value.toTensor(), written);
    }
  }
  at::Tensor taken(const at::Tensor& tensor, bool written) {
    if (!fake(tensor)) return tensor;
    (written ? writes_ : reads_).push_back(memory_of(tensor));
    ours_.push_back(tensor);
    written_.push_back(written);
    const bool to_be_resized = written && tensor.numel() == 0;
    theirs_.push_back(to_be_resized ? at::empty({0}, tensor.scalar_type()) : on_cpu(tensor));
    return theirs_.back();
  }
  void give(c10::IValue& value, std::size_t number) {
    if (!value.isTensor() || !value.toTensor().defined()) return;
    const at::Tensor result = value.toTensor();
    for (std::size_t i = 0; i < ours_.size(); ++i)
      if (theirs_[i].is_same(result)) {
        if (ours_[i].sizes() != result.sizes()) {
          const at::Tensor grown = made_ours(result, number);
          ours_[i].set_(grown.storage(), 0, grown.sizes(), grown.strides());
        }
        value = ours_[i];
        return;
      }
    value = made_ours(result, number);
  }
  at::Tensor made_ours(const at::Tensor& result, std::size_t number) {
    const at::Device device = ours_.front().device();
    at::Tensor own =
        empty_strided(result.sizes(), result.strides(), result.scalar_type(), {}, device, {});
    const std::array<const void*, 1> write{memory_of(own)};
    model().work(current_key(device), {}, write);
    if (FakeGraphs* const graphs = FakeGraphs::recording()) {
      graphs->keep(own);
      made_.emplace_back(number, on_cpu(own));
    }
    on_cpu(own).copy_(result);
    return own;
  }

  const c10::OperatorHandle& op_;
  std::vector<at::Tensor> ours_, theirs_;
  std::vector<bool> written_;
  std::vector<const void*> reads_, writes_;
  std::vector<std::pair<std::size_t, at::Tensor>> made_;  ///< new tensors, by results' numbers
};

void by_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const at::AutoDispatchBelowAutograd below;
  Call(op).run(stack);
}

}  // namespace

StreamModel::Stream fake_stream(void* native_handle) {
  const auto handle = reinterpret_cast<std::intptr_t>(native_handle) - 1;
  return {static_cast<int>(handle / kHandles), handle % kHandles};
}

int questions_about_events() {
  return questions;
}

at::Device fake_device(int index) {
  return {kFake, static_cast<at::DeviceIndex>(index)};
}

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&by_cpu>());
  c10::register_privateuse1_backend("fake");
  at::SetAllocator(kFake, &allocator);
  at::RegisterPrivateUse1HooksInterface(new Hooks);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("as_strided", at::native::as_strided_tensorimpl);
  m.impl("view", at::native::view);
  m.impl("_reshape_alias", at::native::_reshape_alias);
  m.impl("set_.source_Storage_storage_offset", at::native::set_storage_cpu_);
  m.impl("_copy_from", copy_from);
  m.impl("_local_scalar_dense", local_scalar);
}

}  // namespace pipewright::test
