// SPDX-License-Identifier: Apache-2.0
#include "datasets/arrays/further_inputs.h"

#include <algorithm>

#include "core/base/error_at.h"
#include "core/base/text.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

class FurtherInput {
 public:
  FurtherInput(const SamplePart& part, const NamedArray& array, const NamedInput& wanted)
      : part_(part), array_(array), wanted_(wanted) {}

  at::Tensor settled() const {
    check_shape();
    if (!type_fits())
      refuse(concat("has type ", c10::toString(array_.second.scalar_type()), ", the model's '",
                    wanted_.name, "' is ", wanted_text()));
    at::Tensor values = array_.second;
    if (!at::isFloatingType(wanted_.type) || !values.is_floating_point())
      values = values.to(wanted_.type);
    if (wanted_.vocabulary > 0) check_tokens(values);
    return values;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw data_error(part_.path, "tensor '", array_.first, "' ", what);
  }

  void check_shape() const {
    std::vector<std::int64_t> shape = wanted_.shape;
    shape.insert(shape.begin(), part_.x.size(0));
    if (array_.second.sizes() != at::IntArrayRef(shape))
      refuse(concat("has shape ", list_text(array_.second.sizes().vec()), ", must be ",
                    list_text(shape), ": a sample for each of ", part_.x_name,
                    ", as the model takes '", wanted_.name, "'"));
  }

  /// Whether no value changes: not even a large integer that a float would round.
  bool type_fits() const {
    const at::ScalarType given = array_.second.scalar_type();
    if (at::isFloatingType(wanted_.type))
      return at::isFloatingType(given) || given == at::kByte || given == at::kChar ||
             given == at::kShort || given == at::kBool;
    if (wanted_.type == at::kBool) return given == at::kBool;
    return c10::isIntegralType(given, /*includeBool=*/true);
  }

  std::string wanted_text() const {
    if (at::isFloatingType(wanted_.type)) return "floating, or integers of at most 16 bits";
    return wanted_.type == at::kBool ? "of truth values" : "of integers";
  }

  void check_tokens(const at::Tensor& tokens) const {
    const at::Tensor wrong = tokens.lt(0).logical_or(tokens.ge(wanted_.vocabulary));
    if (!wrong.any().item<bool>()) return;
    const auto index = wrong.flatten().to(at::kByte).argmax().item<std::int64_t>();
    refuse(concat("record ", index / (tokens.numel() / tokens.size(0)),
                  " (counted from 0) has the token ", tokens.flatten()[index].item<std::int64_t>(),
                  ", the model takes 0 to ", wanted_.vocabulary - 1));
  }

  const SamplePart& part_;
  const NamedArray& array_;
  const NamedInput& wanted_;
};

}  // namespace

void settle_further(SamplePart& part, std::span<const NamedInput> wanted) {
  PIPEWRIGHT_CHECK(part.further.size() == wanted.size(), part.further.size(), " inputs");
  for (std::size_t i = 0; i < wanted.size(); ++i)
    part.further[i].second = FurtherInput(part, part.further[i], wanted[i]).settled();
}

}  // namespace pipewright
