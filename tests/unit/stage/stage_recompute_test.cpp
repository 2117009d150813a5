// SPDX-License-Identifier: Apache-2.0
// A stage whose forward keeps its inputs only and is run again before its backwards.
#include <c10/util/intrusive_ptr.h>

#include "core/base/error.h"
#include "tests/unit/stage/stage_fixture.h"

namespace pipewright::test {
namespace {

using Keep = Stage::Keep;
using StageRecompute = StageTest;
using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl>;

/// tanh, whose backward needs its output; remembers, without holding it, what it gave last.
class WatchedTanh final : public Layer {
 public:
  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor>, std::span<at::Tensor>,
                     const Pass& pass) const override {
    passes.push_back(pass);
    const at::Tensor output = input.tanh();
    last = WeakTensor(output.getIntrusivePtr());
    return output;
  }
  bool alive() const { return !last->expired(); }

  mutable std::vector<Pass> passes;
  mutable std::optional<WeakTensor> last;
};

/// Boundaries as models make them: an integer tensor in front of the float one.
class NumbersInFront final : public Layer {
 public:
  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor>, std::span<at::Tensor>,
                     const Pass&) const override {
    return input;
  }
  Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor>, std::span<at::Tensor>,
                      const Pass&) const override {
    return {at::arange(inputs[0].size(0)), inputs[0], inputs[0] * 2};
  }
};

/// Goes on with the last tensor alone.
class LastOnly final : public Layer {
 public:
  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor>, std::span<at::Tensor>,
                     const Pass&) const override {
    return input;
  }
  Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor>, std::span<at::Tensor>,
                      const Pass&) const override {
    return {inputs.back()};
  }
};

TEST_F(StageRecompute, GivesTheBitsOfAForwardThatKeptItsGraph) {
  const auto passed = [&](Keep keep) {
    Stage s = stage({linear(3, 5), batch_norm(5), dropout(0.5), activation(Activation::Tanh)});
    const Pass pass{.seed = 3, .epoch = 1, .minibatch = 7, .first_sample = 2};
    std::vector<at::Tensor> all;
    for (int id = 0; id < 2; ++id) {
      at::Tensor x = x_ + id;
      for (const at::Tensor& y : s.forward(id, {x}, pass, true, keep)) all.push_back(y);
    }
    for (const int id : {1, 0}) {
      if (keep == Keep::Inputs) s.recompute(id, pass);
      for (const at::Tensor& g :
           s.backward(id, {.gradients = {random({4, 5}, 2)}, .input_gradient = true}))
        all.push_back(g);
    }
    all.insert(all.end(), s.gradients().begin(), s.gradients().end());
    for (const auto& [name, tensor] : s.named_buffers()) all.push_back(tensor);
    return all;
  };
  const auto kept = passed(Keep::Graph), again = passed(Keep::Inputs);
  ASSERT_EQ(kept.size(), again.size());
  EXPECT_EQ(kept.size(), 2U + 2U + 4U + 2U);
  for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(at::equal(kept[i], again[i])) << i;
}

TEST_F(StageRecompute, KeepsNoActivationMeanwhile) {
  const auto watched = std::make_shared<WatchedTanh>();
  Stage s = stage({linear(3, 4), watched, linear(4, 2)});
  s.forward(0, {x_.clone()}, {}, true);
  EXPECT_TRUE(watched->alive());
  s.forward(1, {x_.clone()}, {}, true, Keep::Inputs);
  EXPECT_FALSE(watched->alive());
  s.recompute(1, {});
  EXPECT_TRUE(watched->alive());
  s.backward(1, {.gradients = {random({4, 2}, 2)}, .input_gradient = true});
  EXPECT_FALSE(watched->alive());
}

TEST_F(StageRecompute, TellsLayersThatItIsOne) {
  const auto watched = std::make_shared<WatchedTanh>();
  Stage s = stage({linear(3, 4), watched});
  s.forward(0, {x_.clone()}, {.minibatch = 5, .first_sample = 2}, false, Keep::Inputs);
  s.recompute(0, {.minibatch = 5, .first_sample = 2});
  s.forward(1, {x_.clone()}, {.training = false}, false);
  ASSERT_EQ(watched->passes.size(), 3U);
  EXPECT_FALSE(watched->passes[0].recomputing);
  EXPECT_TRUE(watched->passes[1].recomputing);
  EXPECT_EQ(watched->passes[1].first_sample, 2);
  EXPECT_EQ(watched->passes[1].minibatch, 5);
  EXPECT_FALSE(watched->passes[2].recomputing);
}

TEST_F(StageRecompute, MustComeBeforeTheBackward) {
  Stage s = stage({linear(3, 2)});
  s.forward(0, {x_.clone()}, {}, false, Keep::Inputs);
  try {
    s.backward(0, {.gradients = {random({4, 2}, 2)}});
    ADD_FAILURE() << "there is no graph";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Bug);
  }
}

TEST_F(StageRecompute, OfTheLastStageMakesItsLossAgain) {
  const auto learned = [&](Keep keep) {
    Stage s = stage({linear(3, 4), dropout(0.5), linear(4, 2)}, true);
    s.forward(0, {x_.clone()}, {.seed = 2}, true, keep);
    std::vector<at::Tensor> all{s.final_loss(0, y_)};
    if (keep == Keep::Inputs) {
      s.recompute(0, {.seed = 2});
      EXPECT_TRUE(at::equal(s.final_loss(0, y_), all[0]));
    }
    for (const at::Tensor& g :
         s.backward(0, {.own_loss = true, .factor = 0.25, .input_gradient = true}))
      all.push_back(g);
    all.insert(all.end(), s.gradients().begin(), s.gradients().end());
    return all;
  };
  const auto kept = learned(Keep::Graph), again = learned(Keep::Inputs);
  ASSERT_EQ(kept.size(), again.size());
  for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(at::equal(kept[i], again[i])) << i;
}

/// The head comes before the recomputation, the backwards of its loss after.
TEST_F(StageRecompute, KeepsWhatAnAuxiliaryHeadNeeds) {
  const auto learned = [&](Keep keep) {
    const auto watched = std::make_shared<WatchedTanh>();
    Stage s = stage({linear(3, 5), watched}, false, linear(5, 2));
    s.forward(0, {x_.clone()}, {}, true, keep);
    s.head(0, y_, {}, 0.5, true);
    EXPECT_EQ(watched->alive(), keep == Keep::Graph);
    if (keep == Keep::Inputs) s.recompute(0, {});
    std::vector<at::Tensor> all = s.gradients();
    for (const at::Tensor& g :
         s.backward(0, {.own_loss = true, .input_gradient = true, .last = false}))
      all.push_back(g);
    for (const at::Tensor& g :
         s.backward(0, {.gradients = {random({4, 5}, 2)}, .input_gradient = true}))
      all.push_back(g);
    all.insert(all.end(), s.gradients().begin(), s.gradients().end());
    return all;
  };
  const auto kept = learned(Keep::Graph), again = learned(Keep::Inputs);
  ASSERT_EQ(kept.size(), again.size());
  for (std::size_t i = 0; i < kept.size(); ++i)
    EXPECT_TRUE(kept[i].defined() ? at::equal(kept[i], again[i]) : !again[i].defined()) << i;
}

/// torchgpipe's own test: 100 dropouts in each of two stages, ten micro-batches.
TEST_F(StageRecompute, DropsWhatItsForwardDropped) {
  const auto dropouts = [&](int first) {
    std::vector<LayerPtr> layers(100);
    for (LayerPtr& layer : layers) layer = dropout(0.001);
    return named(std::move(layers), first);
  };
  Stage one({.layers = dropouts(0),
             .options = at::kDouble,
             .optimizer = optimizer_.get(),
             .loss = loss_.get()},
            1);
  Stage two({.layers = dropouts(100),
             .options = at::kDouble,
             .optimizer = optimizer_.get(),
             .loss = loss_.get()},
            1);
  std::int64_t dropped = 0;
  std::vector<at::Tensor> outputs;
  for (int id = 0; id < 10; ++id) {
    const Pass pass{.first_sample = 10 * id};
    Tensors x = one.forward(id, {at::ones({10, 100}, at::kDouble)}, pass, true, Keep::Inputs);
    outputs.push_back(two.forward(id, std::move(x), pass, true, Keep::Inputs)[0]);
  }
  for (int id = 9; id >= 0; --id) {
    const Pass pass{.first_sample = 10 * id};
    const at::Tensor& output = outputs[static_cast<std::size_t>(id)];
    two.recompute(id, pass);
    Tensors g = two.backward(id, {.gradients = {at::ones_like(output)}, .input_gradient = true});
    one.recompute(id, pass);
    g = one.backward(id, {.gradients = std::move(g), .input_gradient = true});
    EXPECT_TRUE(at::equal(g[0].eq(0), output.eq(0)));
    dropped += output.eq(0).sum().item<std::int64_t>();
  }
  EXPECT_GT(dropped, 0);
}

/// The loss hangs on the last of three tensors, the first of which is of integers.
TEST_F(StageRecompute, TakesSeveralTensorsAndALossOfAnyOfThem) {
  const auto learned = [&](Keep keep) {
    Stage first = stage({linear(3, 2), std::make_shared<NumbersInFront>()});
    Stage second = stage({std::make_shared<LastOnly>(), linear(2, 2)}, true);
    Tensors between = first.forward(0, {x_.clone()}, {}, false, keep);
    second.forward(0, between, {}, true, keep);
    second.final_loss(0, y_);
    if (keep == Keep::Inputs) {
      second.recompute(0, {});
      second.final_loss(0, y_);
      first.recompute(0, {});
    }
    Tensors gradients = second.backward(0, {.own_loss = true, .input_gradient = true});
    EXPECT_FALSE(gradients[0].defined());
    first.backward(0, {.gradients = {gradients[1], gradients[2]}});
    std::vector<at::Tensor> all = first.gradients();
    all.insert(all.end(), second.gradients().begin(), second.gradients().end());
    return all;
  };
  const auto kept = learned(Keep::Graph), again = learned(Keep::Inputs);
  ASSERT_EQ(kept.size(), again.size());
  for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(at::equal(kept[i], again[i])) << i;
  EXPECT_GT(kept[0].abs().max().item<double>(), 0);
}

}  // namespace
}  // namespace pipewright::test
