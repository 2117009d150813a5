// SPDX-License-Identifier: Apache-2.0
// A message comes out of a list of tensors as it went in.
#include "core/runtime/envelope.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/tensors/torch.h"

namespace pipewright::test {
namespace {

bool same(const Tensors& a, const Tensors& b) {
  bool all = a.size() == b.size();
  for (std::size_t i = 0; all && i < a.size(); ++i) all = a[i].is_same(b[i]);
  return all;
}

TEST(Envelope, ComesOutOfAListAsItWentIn) {
  for (const bool scaled : {false, true})
    for (int originals = -1; originals < 3; ++originals) {  // −1: they are not compared
      Envelope message{.tensors = {at::ones({2}), at::ones({3})}};
      if (originals >= 0) message.originals.emplace();
      for (int i = 0; i < originals; ++i) message.originals->push_back(at::zeros({4}));
      if (scaled) message.scale = at::ones({}, at::kLong);
      const Envelope again = envelope_of(flat(message), contents_of(message));
      EXPECT_TRUE(same(again.tensors, message.tensors));
      ASSERT_EQ(again.originals.has_value(), originals >= 0);
      if (again.originals) {
        EXPECT_TRUE(same(*again.originals, *message.originals));
      }
      EXPECT_EQ(again.scale.defined(), scaled);
    }
}

TEST(Envelope, OfAnotherNumberOfTensorsIsABug) {
  EXPECT_THROW(envelope_of({at::ones({1})}, {.tensors = 1, .scale = true}), Error);
}

}  // namespace
}  // namespace pipewright::test
