// SPDX-License-Identifier: Apache-2.0
#include "core/cost/cost_table.h"

#include <cmath>
#include <limits>

#include "core/base/as_size.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/config/options.h"

namespace pipewright {
namespace {

/// One column of the table.
class Column {
 public:
  Column(Options& options, const std::string& name, int stages, const std::string& help)
      : options_(options), name_(name), values_(as_size(stages), 0) {
    const Value value = options.any(name, Value::of(0), help);
    given_ = options.given(name);
    if (!given_ || value.refused) return;
    if (!value.is(Value::Kind::Sequence)) {
      values_.assign(values_.size(), number(value, name));
    } else if (value.items.size() != values_.size()) {
      options.problem(name, concat("has ", counted(value.items.size(), "number"), " for ",
                                   counted(stages, "stage"), "; expected one per stage"));
    } else {
      for (std::size_t k = 0; k < values_.size(); ++k)
        values_[k] = number(value.items[k], concat(name, "[", k, "]"));
    }
  }

  bool given() const { return given_; }
  double operator[](std::size_t stage) const { return values_[stage]; }
  std::int64_t bytes(std::size_t stage) const { return std::llround(values_[stage]); }

 private:
  double number(const Value& value, const std::string& name) {
    const double read = value.is(Value::Kind::Integer)  ? static_cast<double>(value.integer)
                        : value.is(Value::Kind::Number) ? value.number
                                                        : kNoNumber;
    if (read >= 0 && read < 1e18) return read;
    options_.problem(name, concat("is ", value.shown(), "; expected a number of at least 0",
                                  name == name_ ? ", or a list with one per stage" : ""));
    return 0;
  }

  Options& options_;
  std::string name_;
  std::vector<double> values_;
  bool given_ = false;
};

CostTable read_columns(Options& options, int stages) {
  CostTable table;
  table.samples = options.integer(
      "samples", 0,
      "Samples of one micro-batch, for the samples a second; 0 = as the experiment has it.",
      kNotNegative);
  auto column = [&](const char* name, const char* help) {
    return Column(options, name, stages, help);
  };
  const Column forward = column("forward", "Seconds that a forward takes.");
  const Column backward = column("backward", "Seconds that a backward takes.");
  const Column backward_input =
      column("backward_input",
             "Seconds that an input-only backward takes: the gradient of the stage's input.");
  const Column backward_weight =
      column("backward_weight",
             "Seconds that a weight-only backward takes: the gradients of the weights.");
  const Column head =
      column("head", "Seconds that an auxiliary head takes, forward and backward together.");
  const Column update = column("update", "Seconds that the optimizer takes, once per mini-batch.");
  const Column new_version =
      column("new_version",
             "Seconds that an update takes longer if it keeps the old version beside the new one.");
  const Column prediction =
      column("prediction", "Seconds that one prediction of the weights takes.");
  const Column fused = column("fused_prediction",
                              "Seconds that an update takes longer if it makes the prediction of "
                              "the pass behind it, too; default: the pass makes it.");
  const Column pair =
      column("fused_pair",
             "Seconds that a forward of the stage takes together with the backward beside it, "
             "where a schedule has fused pairs; default: by both passes and devices.overlap.");
  const Column input = column("input_bytes",
                              "Bytes that arrive at the stage, and of the gradient that it sends "
                              "back; default: output_bytes of the stage before.");
  const Column output = column("output_bytes",
                               "Bytes sent to the next stage; its gradient is as large. Default: "
                               "input_bytes of the next stage.");
  const Column activation =
      column("activation_bytes",
             "Bytes of activations that a micro-batch keeps from forward to backward.");
  const Column peak = column("peak_bytes", "Bytes that one pass needs only while it runs.");
  const Column parameters =
      column("parameter_bytes", "Bytes of one version of the stage's parameters.");
  const Column buffers =
      column("buffer_bytes", "Bytes of the stage's buffers, such as running statistics.");
  if (!forward.given())
    options.problem("forward", "is missing; expected the seconds that a forward takes");
  options.finish();
  for (std::size_t k = 0; k < as_size(stages); ++k) {
    const double whole = backward.given() ? backward[k] : 2 * forward[k];
    const bool next = k + 1 < as_size(stages), before = k > 0 && output.given();
    table.stages.push_back(
        {.forward = forward[k],
         .backward = whole,
         .backward_input = backward_input.given() ? backward_input[k] : whole / 2,
         .backward_weight = backward_weight.given() ? backward_weight[k] : whole / 2,
         .head = head[k],
         .update = update[k],
         .new_version = new_version[k],
         .prediction = prediction[k],
         .fused_prediction = fused.given() ? std::optional(fused[k]) : std::nullopt,
         .fused_pair = pair.given() ? std::optional(pair[k]) : std::nullopt,
         .input_bytes = input.given() ? input.bytes(k) : (before ? output.bytes(k - 1) : 0),
         .output_bytes = output.given() ? output.bytes(k) : (next ? input.bytes(k + 1) : 0),
         .activation_bytes = activation.bytes(k),
         .peak_bytes = peak.bytes(k),
         .peak_bare_bytes = peak.bytes(k),
         .parameter_bytes = parameters.bytes(k),
         .buffer_bytes = buffers.bytes(k),
         .head_memory = {.peak_bytes = peak.bytes(k)}});
  }
  return table;
}

}  // namespace

std::vector<StageCost> equal_costs(int stages, double forward) {
  return std::vector<StageCost>(as_size(stages), {.forward = forward,
                                                  .backward = 2 * forward,
                                                  .backward_input = forward,
                                                  .backward_weight = forward});
}

std::vector<std::string> cost_table_keys() {
  const Value nothing = Value::mapping();
  Problems unheard;
  Options options(&nothing, "costs", unheard);
  read_columns(options, 1);
  std::vector<std::string> keys;
  for (const OptionInfo& info : options.declared())
    if (info.name != "samples") keys.push_back(info.name);
  return keys;
}

CostTable read_cost_table(const Value& document, int stages, Problems& problems) {
  Options options(&document, "costs", problems);
  return read_columns(options, stages);
}

}  // namespace pipewright
