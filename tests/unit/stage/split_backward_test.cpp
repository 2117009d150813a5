// SPDX-License-Identifier: Apache-2.0
// A backward in two halves: the same bits as the whole, and no operation's work done twice, which
// is counted.
#include "core/stage/split_backward.h"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include <functional>
#include <map>

#include "tests/unit/stage/stage_fixture.h"

namespace pipewright::test {
namespace {

/// How often each operation of interest is called while it lives. A convolution's backward counts
/// once for its input and once for its weights; so do all that are told what to make.
class Counted {
 public:
  Counted() {
    here_ = &counts_;
    handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(&Counted::count)
                                             .needsInputs(true)
                                             .scopes({at::RecordScope::FUNCTION}));
  }
  ~Counted() { at::removeCallback(handle_); }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  std::map<std::string, int> operator()() const { return counts_; }

 private:
  static std::unique_ptr<at::ObserverContext> count(const at::RecordFunction& call) {
    const std::string name = call.name();
    if (name == "aten::_slow_conv2d_backward") return nullptr;  // within a convolution's
    const bool heavy = name == "aten::mm" || name == "aten::bmm" || name == "aten::addmm";
    if (!heavy && name.find("_backward") == std::string::npos) return nullptr;
    if (!told_what_to_make(call, name)) ++(*here_)[name];
    return nullptr;
  }

  /// Of those with an output mask: input, then weight and bias.
  static bool told_what_to_make(const at::RecordFunction& call, const std::string& name) {
    if (name != "aten::convolution_backward" && name != "aten::native_layer_norm_backward")
      return false;
    const std::vector<bool> mask = call.inputs().back().toBoolList().vec();
    if (mask[0]) ++(*here_)[name + " of the input"];
    if (mask[1]) ++(*here_)[name + " of the weight"];
    return true;
  }

  static inline thread_local std::map<std::string, int>* here_ = nullptr;
  std::map<std::string, int> counts_;
  at::CallbackHandle handle_ = 0;
};

std::map<std::string, int> operator+(std::map<std::string, int> a,
                                     const std::map<std::string, int>& b) {
  for (const auto& [name, count] : b) a[name] += count;
  return a;
}

using SplitBackward = StageTest;

/// What a micro-batch's backward makes, and how: whole, or in halves.
struct Made {
  Tensors of_inputs;
  std::vector<at::Tensor> gradients;
  std::map<std::string, int> first, second;
};

struct Layers {
  std::string what;
  std::function<std::vector<LayerPtr>()> make;
  Tensors input;
};

class SplitBackwardOf : public StageTest {
 protected:
  Stage stage_of(const Layers& layers, at::ScalarType type) const {
    return Stage({.layers = named(layers.make()),
                  .options = type,
                  .optimizer = optimizer_.get(),
                  .loss = loss_.get()},
                 1);
  }

  Made made(const Layers& layers, bool halves, bool first_stage, at::ScalarType type) const {
    Stage s = stage_of(layers, type);
    Tensors inputs;
    for (const at::Tensor& tensor : layers.input)
      inputs.push_back(tensor.is_floating_point() ? tensor.to(type).clone() : tensor.clone());
    const Tensors outputs = s.forward(0, inputs, {}, !first_stage);
    Stage::BackwardRequest request{.learn = !halves, .input_gradient = !first_stage};
    for (const at::Tensor& output : outputs)
      if (output.is_floating_point())
        request.gradients.push_back(random(output.sizes(), 7).to(type));
    if (halves) request.half_of = 3;
    Made made;
    {
      const Counted counted;
      made.of_inputs = s.backward(0, std::move(request));
      made.first = counted();
    }
    if (halves) {
      for (const at::Tensor& gradient : s.gradients()) EXPECT_FALSE(gradient.defined());
      const Counted counted;
      s.backward_weight(0, 3, 1);
      made.second = counted();
    }
    made.gradients = s.gradients();
    EXPECT_THROW(s.backward(0, {}), Error) << "the graph is still there";
    return made;
  }

  /// Bits, absences and work.
  void expect_same(const Layers& layers, bool first_stage, at::ScalarType type) const {
    SCOPED_TRACE(concat(layers.what, first_stage ? ", first stage, " : ", ", c10::toString(type)));
    const Made whole = made(layers, false, first_stage, type),
               halves = made(layers, true, first_stage, type);
    ASSERT_EQ(whole.of_inputs.size(), halves.of_inputs.size());
    for (std::size_t i = 0; i < whole.of_inputs.size(); ++i) {
      ASSERT_EQ(whole.of_inputs[i].defined(), halves.of_inputs[i].defined()) << "input " << i;
      if (whole.of_inputs[i].defined()) {  // integers have none
        EXPECT_TRUE(at::equal(whole.of_inputs[i], halves.of_inputs[i])) << "input " << i;
      }
    }
    for (std::size_t i = 0; i < whole.gradients.size(); ++i) {
      ASSERT_EQ(whole.gradients[i].defined(), halves.gradients[i].defined()) << i;
      if (whole.gradients[i].defined()) {
        EXPECT_TRUE(at::equal(whole.gradients[i], halves.gradients[i])) << "parameter " << i;
      }
    }
    EXPECT_EQ(halves.first + halves.second, whole.first);
  }
};

at::Tensor tokens(at::IntArrayRef shape, std::int64_t most) {
  return (random(shape, 5).abs() * 100).to(at::kLong).remainder(most);
}

std::vector<Layers> every_kind() {
  const at::Tensor rows = random({4, 6}, 1), image = random({4, 3, 8, 8}, 1),
                   sentences = random({4, 5, 6}, 1);
  return {
      {"linear",
       [] {
         return std::vector{linear(6, 6), linear(6, 4)};
       },
       {rows}},
      {"linear with activation",
       [] {
         return std::vector{linear(6, 5, {.activation = Activation::Relu}),
                            linear(5, 5, {.activation = Activation::GeluTanh}),
                            linear(5, 4, {.activation = Activation::Tanh, .bias = false})};
       },
       {rows}},
      {"linear on three dimensions",
       [] {
         return std::vector{linear(6, 6), layer_norm(6), linear(6, 4)};
       },
       {sentences}},
      {"convolution",
       [] {
         return std::vector{convolution(3, 4, {.padding = 1}),
                            activation(Activation::Relu),
                            convolution(4, 4, {.stride = 2, .bias = false}),
                            max_pool(2, 1),
                            flatten(),
                            linear(16, 3)};
       },
       {image}},
      {"batch norm",
       [] {
         return std::vector{convolution(3, 4, {.padding = 1, .bias = false}), batch_norm(4),
                            activation(Activation::Relu), convolution(4, 2, {.bias = false}),
                            batch_norm(2)};
       },
       {image}},
      {"residual",
       [] {
         return std::vector{residual(sequence({{"a", convolution(3, 4, {.padding = 1})},
                                               {"b", activation(Activation::Relu)},
                                               {"c", convolution(4, 4, {.padding = 1})}}),
                                     convolution(3, 4, {.kernel = 1})),
                            residual(convolution(4, 4, {.padding = 1}))};
       },
       {image}},
      {"skip connections",
       [] {
         return std::vector{stash(), convolution(3, 3, {.padding = 1}), add_stashed(),
                            stash(), convolution(3, 3, {.padding = 1}), concatenate_stashed()};
       },
       {image}},
      {"attention",
       [] {
         return std::vector{layer_norm(6), self_attention(6, 2), linear(6, 6)};
       },
       {sentences}},
      {"dropout",
       [] {
         return std::vector{linear(6, 6), dropout(0.5), linear(6, 4)};
       },
       {rows}},
      {"embedding",
       [] {
         return std::vector{embedding(9, 6), layer_norm(6), linear(6, 4)};
       },
       {tokens({4, 5}, 9)}},
      {"embedding alone", [] { return std::vector{embedding(9, 6)}; }, {tokens({4, 5}, 9)}},
      {"sum of embeddings",
       [] {
         return std::vector{sum_of({{"words", embedding(9, 6)}, {"again", embedding(9, 6)}}),
                            linear(6, 4)};
       },
       {tokens({4, 5}, 9)}},
      {"lstm",
       [] {
         return std::vector{lstm(6, 5), lstm(5, 4), linear(4, 2)};
       },
       {sentences}},
      {"no parameters", [] { return std::vector{activation(Activation::Tanh)}; }, {rows}},
  };
}

TEST_F(SplitBackwardOf, EveryKindOfLayerGivesTheSameBitsForTheSameWork) {
  for (const Layers& layers : every_kind())
    for (const bool first_stage : {false, true})
      for (const at::ScalarType type : {at::kFloat, at::kDouble})
        expect_same(layers, first_stage, type);
}

TEST_F(SplitBackwardOf, LinearLayersTakeOneProductPerGradient) {
  const Layers layers{"linear",
                      [] {
                        return std::vector{linear(6, 6), linear(6, 4)};
                      },
                      {random({4, 6}, 1)}};
  const Made inner = made(layers, true, false, at::kDouble),
             first = made(layers, true, true, at::kDouble);
  EXPECT_EQ(inner.first.at("aten::mm"), 2);   // of both inputs
  EXPECT_EQ(inner.second.at("aten::mm"), 2);  // of both weights
  EXPECT_EQ(first.first.at("aten::mm"), 1);   // nobody wants the first layer's
  EXPECT_EQ(first.second.at("aten::mm"), 2);
}

TEST_F(SplitBackwardOf, ConvolutionsMakeTheirInputsThenTheirWeights) {
  const Layers layers{"convolution",
                      [] {
                        return std::vector{convolution(3, 4, {}), convolution(4, 2, {})};
                      },
                      {random({2, 3, 8, 8}, 1)}};
  using Counts = std::map<std::string, int>;
  const Made halves = made(layers, true, false, at::kFloat);
  EXPECT_EQ(halves.first, (Counts{{"aten::convolution_backward of the input", 2}}));
  EXPECT_EQ(halves.second, (Counts{{"aten::convolution_backward of the weight", 2}}));
}

int chain_calls = 0;

/// The identity, whose backward counts.
struct Counting : torch::autograd::Function<Counting> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) {
    return x.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list& gradients) {
    ++chain_calls;
    return {gradients[0]};
  }
};

/// One weight used again and again, as in a recurrent layer.
class Recurrent final : public Layer {
 public:
  std::vector<ParameterSpec> parameters() const override {
    return {{"weight", {6, 6}, {Initializer::Kind::Uniform, 0.5}}};
  }
  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor>, const Pass&) const override {
    at::Tensor h = input;
    for (int step = 0; step < 4; ++step) h = Counting::apply(at::linear(h, parameters[0])).tanh();
    return h;
  }
};

TEST_F(SplitBackwardOf, AChainWithinALayerIsWalkedOnce) {
  const Layers layers{"recurrent",
                      [] { return std::vector<LayerPtr>{std::make_shared<Recurrent>()}; },
                      {random({4, 6}, 1)}};
  for (const bool halves : {false, true}) {
    chain_calls = 0;
    made(layers, halves, false, at::kDouble);
    EXPECT_EQ(chain_calls, 4);
  }
  expect_same(layers, false, at::kDouble);
  expect_same(layers, true, at::kFloat);
}

TEST_F(SplitBackward, OfSeveralLossesKeepsThemApart) {
  const auto layers = [] {
    return std::vector{linear(3, 2), activation(Activation::Tanh), linear(2, 2)};
  };
  const at::Tensor g = random({4, 2}, 2), h = random({4, 2}, 3);
  Stage whole = stage(layers()), halves = stage(layers());
  whole.forward(0, {x_.clone()}, {}, true);
  whole.backward(0, {.gradients = {h}, .scale = 0.5, .last = false});
  whole.backward(0, {.gradients = {g}});
  halves.forward(0, {x_.clone()}, {}, true);
  halves.backward(0, {.gradients = {g}, .learn = false, .last = false, .half_of = 4});
  halves.backward(0, {.gradients = {h}, .learn = false, .last = false, .half_of = 5});
  halves.backward_weight(0, 5, 0.5);
  const Tensors relayed =
      halves.backward(0, {.gradients = {g}, .learn = false, .input_gradient = true});
  EXPECT_EQ(relayed[0].sizes(), x_.sizes()) << "a relay may follow";
  halves.backward_weight(0, 4, 1);
  for (std::size_t p = 0; p < 4; ++p)
    EXPECT_TRUE(at::equal(whole.gradients()[p], halves.gradients()[p])) << p;
}

TEST_F(SplitBackward, LetsGoOfWhatOnlyTheInputNeeded) {
  Stage s = stage({linear(3, 3), activation(Activation::Tanh), linear(3, 2)});
  at::Tensor x = x_.clone();
  const c10::weak_intrusive_ptr<c10::TensorImpl> input(x.getIntrusivePtr());
  s.forward(0, {x}, {}, true);
  s.backward(0, {.gradients = {random({4, 2}, 2)}, .learn = false, .half_of = 0});
  s.backward_weight(0, 0, 1);
  x.reset();
  EXPECT_TRUE(input.expired());
}

TEST_F(SplitBackward, WithoutItsFirstHalfIsABug) {
  Stage s = stage({linear(3, 2)});
  s.forward(0, {x_.clone()}, {}, false);
  EXPECT_THROW(s.backward_weight(0, 0, 1), Error);
}

}  // namespace
}  // namespace pipewright::test
