// SPDX-License-Identifier: Apache-2.0
#include "models/parts/layer_list.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/nn/layers.h"

namespace pipewright {
namespace {

constexpr std::size_t kMostLayers = 10'000;
constexpr std::int64_t kMostElements = std::int64_t{1} << 40;  ///< of a sample

/// A layer and the shape behind it; or, without `make`, why the shape before it does not fit.
struct Step {
  std::function<LayerPtr()> make;
  SampleShape after;
  std::string wants;  ///< "wants an image", if the shape does not fit
};

template <class... Parts>
Step refused(const Parts&... wants) {
  return {.make = {}, .after = {}, .wants = concat(wants...)};
}

using ReadLayer = std::function<Step(Options& options, const SampleShape& before)>;

/// One kind of layer that a list may have.
struct ListedKind {
  const char* name;
  const char* first;  ///< the option that stands alone in `{linear: 10}`; "" if there is none
  const char* help;
  Step (*read)(Options& options, const SampleShape& before);
};

constexpr Range kSize{1, 1e6};

std::int64_t size_after(std::int64_t size, std::int64_t kernel, std::int64_t stride,
                        std::int64_t padding) {
  return size + 2 * padding < kernel ? 0 : (size + 2 * padding - kernel) / stride + 1;
}

/// The image behind a window that slides over it; refused if no window fits.
Step slid(const SampleShape& before, std::int64_t channels, std::int64_t kernel,
          std::int64_t stride, std::int64_t padding, std::function<LayerPtr()> make) {
  const std::int64_t height = size_after(before.sizes[1], kernel, stride, padding),
                     width = size_after(before.sizes[2], kernel, stride, padding);
  if (height < 1 || width < 1)
    return refused("wants an image of at least ", std::max<std::int64_t>(1, kernel - 2 * padding),
                   " pixels a side");
  return {std::move(make), {{channels, height, width}}, {}};
}

Step read_conv(Options& options, const SampleShape& before) {
  const std::int64_t out = options.integer("out", 0, "Channels of the output.", kSize);
  const std::int64_t kernel = options.integer("kernel", 3, "Side of the window.", {1, 1e4});
  const std::int64_t stride =
      options.integer("stride", 1, "Pixels from window to window.", {1, 1e4});
  const std::int64_t padding = options.integer(
      "padding", kernel / 2, "Zeros around the image; default: half of the kernel.", {0, 1e4});
  const std::int64_t groups =
      options.integer("groups", 1, "Groups of channels, each convolved by itself.", kSize);
  const bool bias = options.flag("bias", true, "Whether a bias is added.");
  if (!before.is_image()) return refused("wants an image");
  const std::int64_t in = before.sizes[0];
  if (out < 1) return refused("wants the option `out`, the channels of its output");
  if (in % groups != 0 || out % groups != 0)
    return refused("wants groups that divide its ", in, " and ", out, " channels");
  return slid(before, out, kernel, stride, padding, [=] {
    return convolution(in, out,
                       {.kernel = kernel,
                        .stride = stride,
                        .padding = padding,
                        .groups = groups,
                        .bias = bias,
                        .kaiming_fan_out = false});
  });
}

Step read_linear(Options& options, const SampleShape& before) {
  const std::int64_t out = options.integer("out", 0, "Features of the output.", kSize);
  const bool bias = options.flag("bias", true, "Whether a bias is added.");
  if (out < 1) return refused("wants the option `out`, the features of its output");
  if (!before.is_flat() && !before.is_sequence())
    return refused("wants features or vectors, such as `flatten` makes");
  SampleShape after = before;
  after.sizes.back() = out;
  const std::int64_t in = before.sizes.back();
  return {[=] { return linear(in, out, {.bias = bias}); }, after, {}};
}

Step read_embedding(Options& options, const SampleShape& before) {
  const std::int64_t width = options.integer("width", 0, "Numbers per token.", kSize);
  const double deviation =
      options.number("std", 1, "Standard deviation of the initial vectors.", {0, 1e6});
  const bool places = options.flag(
      "positions", false, "Whether a learned vector of its position is added to each token's.");
  if (width < 1) return refused("wants the option `width`, the numbers per token");
  if (!before.is_tokens()) return refused("wants tokens, which model.vocabulary declares");
  const std::int64_t vocabulary = before.vocabulary, tokens = before.sizes[0];
  const auto make = [=]() -> LayerPtr {
    LayerPtr words = embedding(vocabulary, width, {.init_std = deviation});
    if (!places) return words;
    return sum_of(
        {{"", std::move(words)},
         {"positions", sequence({{"of", positions()},
                                 {"", embedding(tokens, width, {.init_std = deviation})}})}});
  };
  return {make, {{tokens, width}, 0}, {}};
}

Step read_attention(Options& options, const SampleShape& before) {
  const std::int64_t heads = options.integer("heads", 1, "Heads; a divisor of the width.", kSize);
  const double probability =
      options.number("dropout", 0, "Dropout probability, applied to the softmax.", {0, 0.99});
  if (!before.is_sequence()) return refused("wants vectors, such as `embedding` makes");
  const std::int64_t width = before.sizes[1];
  if (width % heads != 0) return refused("wants heads that divide the width, ", width);
  return {[=] { return self_attention(width, heads, probability); }, before, {}};
}

Step read_causal_attention(Options& options, const SampleShape& before) {
  const std::int64_t heads = options.integer("heads", 1, "Heads; a divisor of the width.", kSize);
  const std::int64_t key_heads = options.integer(
      "kv_heads", heads, "Heads of keys and values; a divisor of the heads.", kSize);
  const double base = options.number(
      "rotary_base", 10'000, "Of rotary positions; 0: queries and keys are not rotated.", {0, 1e9});
  const bool normed = options.flag(
      "qk_norm", false, "Whether queries and keys are divided by their root mean square.");
  const double scale =
      options.number("scale", 0, "Of the scores; 0: 1/√(width of a head).", {0, 1e6});
  const bool bias = options.flag("bias", false, "Whether biases are added.");
  if (!before.is_sequence()) return refused("wants vectors, such as `embedding` makes");
  const std::int64_t width = before.sizes[1];
  if (width % heads != 0) return refused("wants heads that divide the width, ", width);
  const std::int64_t head = width / heads;
  if (heads % key_heads != 0) return refused("wants kv_heads that divide the heads, ", heads);
  if (base > 0 && (base < 1 || head % 2 != 0))
    return refused(
        "wants a rotary_base of 0 or at least 1, and heads of an even number of numbers, not ",
        head);
  AttentionOptions how{.causal = true, .key_heads = key_heads, .scale = scale};
  if (normed) how.norm_eps = 1e-5;
  if (base > 0) how.rotary = RotaryOptions{.base = base};
  return {[=] {
            const auto projection = [&](std::int64_t out) {
              return linear(width, out, {.bias = bias});
            };
            return attention({{"q_proj", projection(width)},
                              {"k_proj", projection(head * key_heads)},
                              {"v_proj", projection(head * key_heads)}},
                             {"o_proj", projection(width)}, heads, how);
          },
          before,
          {}};
}

Step read_swiglu(Options& options, const SampleShape& before) {
  const std::int64_t hidden = options.integer("hidden", 0, "Features inside.", kSize);
  const bool bias = options.flag("bias", false, "Whether biases are added.");
  if (hidden < 1) return refused("wants the option `hidden`, the features inside");
  if (!before.is_flat() && !before.is_sequence()) return refused("wants features or vectors");
  const std::int64_t width = before.sizes.back();
  return {[=] {
            const auto into = [&](Activation activation) {
              return linear(width, hidden, {.activation = activation, .bias = bias});
            };
            return sequence({{"", product_of({{"gate_proj", into(Activation::Silu)},
                                              {"up_proj", into(Activation::Identity)}})},
                             {"down_proj", linear(hidden, width, {.bias = bias})}});
          },
          before,
          {}};
}

Step read_bound(Options& options, const SampleShape& before) {
  const double c = options.number("c", 15, "The largest magnitude.", {1e-6, 1e6});
  if (before.is_tokens()) return refused("wants numbers, not tokens");
  return {[=] { return bound(c); }, before, {}};
}

Step read_lstm(Options& options, const SampleShape& before) {
  const std::int64_t hidden =
      options.integer("hidden", 0, "Numbers per token of the output.", kSize);
  if (hidden < 1) return refused("wants the option `hidden`, the numbers per token of its output");
  if (!before.is_sequence()) return refused("wants vectors, such as `embedding` makes");
  const std::int64_t in = before.sizes[1];
  return {[=] { return lstm(in, hidden); }, {{before.sizes[0], hidden}}, {}};
}

Step read_batch_norm(Options& options, const SampleShape& before) {
  const double eps = options.number("eps", 1e-5, "Added to the variance.", {0, 1});
  const double momentum = options.number(
      "momentum", 0.1, "Part of the running statistics that a micro-batch replaces.", {0, 1});
  if (!before.is_image()) return refused("wants an image");
  const std::int64_t channels = before.sizes[0];
  return {[=] { return batch_norm(channels, eps, momentum); }, before, {}};
}

Step read_layer_norm(Options& options, const SampleShape& before) {
  const double eps = options.number("eps", 1e-5, "Added to the variance.", {0, 1});
  if (!before.is_flat() && !before.is_sequence()) return refused("wants features or vectors");
  const std::int64_t width = before.sizes.back();
  return {[=] { return layer_norm(width, eps); }, before, {}};
}

Step read_rms_norm(Options& options, const SampleShape& before) {
  const double eps = options.number("eps", 1e-5, "Added to the mean of squares.", {0, 1});
  if (!before.is_flat() && !before.is_sequence()) return refused("wants features or vectors");
  const std::int64_t width = before.sizes.back();
  return {[=] { return rms_norm(width, eps); }, before, {}};
}

Step read_instance_norm(Options& options, const SampleShape& before) {
  const double eps = options.number("eps", 1e-5, "Added to the variance.", {0, 1});
  if (!before.is_image()) return refused("wants an image");
  return {[=] { return instance_norm(eps); }, before, {}};
}

Step read_dropout(Options& options, const SampleShape& before) {
  const double probability = options.number("probability", 0.5, "Of dropping a number.", {0, 0.99});
  if (before.is_tokens()) return refused("wants numbers, not tokens");
  return {[=] { return dropout(probability); }, before, {}};
}

Step read_channel_dropout(Options& options, const SampleShape& before) {
  const double probability =
      options.number("probability", 0.5, "Of dropping a channel.", {0, 0.99});
  if (!before.is_image()) return refused("wants an image");
  return {[=] { return channel_dropout(probability); }, before, {}};
}

template <Activation kind>
Step read_activation(Options&, const SampleShape& before) {
  if (before.is_tokens()) return refused("wants numbers, not tokens");
  return {[] { return activation(kind); }, before, {}};
}

struct Window {
  std::int64_t kernel, stride, padding;
};

Window read_window(Options& options) {
  const std::int64_t kernel = options.integer("kernel", 2, "Side of the window.", {1, 1e4});
  return {kernel,
          options.integer("stride", kernel, "Pixels from window to window; default: the kernel.",
                          {1, 1e4}),
          options.integer("padding", 0, "Pixels around the image; at most half of the kernel.",
                          {0, static_cast<double>(kernel / 2)})};
}

Step read_max_pool(Options& options, const SampleShape& before) {
  const auto [kernel, stride, padding] = read_window(options);
  if (!before.is_image()) return refused("wants an image");
  return slid(before, before.sizes[0], kernel, stride, padding,
              [k = kernel, s = stride, p = padding] { return max_pool(k, s, p); });
}

Step read_average_pool(Options& options, const SampleShape& before) {
  const auto [kernel, stride, padding] = read_window(options);
  if (!before.is_image()) return refused("wants an image");
  return slid(before, before.sizes[0], kernel, stride, padding,
              [k = kernel, s = stride, p = padding] { return average_pool(k, s, p); });
}

Step read_average_pool_to(Options& options, const SampleShape& before) {
  const std::int64_t size = options.integer("size", 1, "Side of the output.", {1, 1e4});
  if (!before.is_image()) return refused("wants an image");
  return {[=] { return average_pool_to(size); }, {{before.sizes[0], size, size}}, {}};
}

Step read_upsample(Options& options, const SampleShape& before) {
  const std::int64_t factor =
      options.integer("factor", 2, "How often each pixel is repeated.", {1, 1e3});
  if (!before.is_image()) return refused("wants an image");
  return {[=] { return upsample_nearest(factor); },
          {{before.sizes[0], before.sizes[1] * factor, before.sizes[2] * factor}},
          {}};
}

Step read_average_over_tokens(Options&, const SampleShape& before) {
  if (!before.is_sequence()) return refused("wants vectors, such as `embedding` makes");
  return {[] { return average_over_tokens(); }, {{before.sizes[1]}}, {}};
}

Step read_first_token(Options&, const SampleShape& before) {
  if (!before.is_sequence()) return refused("wants vectors, such as `embedding` makes");
  return {[] { return first_token(); }, {{before.sizes[1]}}, {}};
}

std::int64_t elements_of(const SampleShape& shape) {
  std::int64_t elements = 1;
  for (const std::int64_t size : shape.sizes)
    if (__builtin_mul_overflow(elements, size, &elements)) return kMostElements + 1;
  return elements;
}

Step read_flatten(Options&, const SampleShape& before) {
  if (before.is_tokens()) return refused("wants numbers, not tokens");
  return {[] { return flatten(); }, {{elements_of(before)}}, {}};
}

constexpr std::array kKinds{
    ListedKind{
        "conv", "out",
        "convolution of an image: out, kernel 3, stride 1, padding kernel/2, groups 1, bias true",
        read_conv},
    ListedKind{"linear", "out", "linear layer on the last dimension: out, bias true", read_linear},
    ListedKind{"embedding", "width", "vectors of tokens: width, std 1, positions false",
               read_embedding},
    ListedKind{"self_attention", "heads", "of all tokens: heads 1, dropout 0", read_attention},
    ListedKind{"causal_attention", "heads",
               "of all tokens before: heads 1, kv_heads heads, rotary_base 10000 (0: no rotary "
               "positions), qk_norm false, scale 0 (1/√(width of a head)), bias false",
               read_causal_attention},
    ListedKind{"lstm", "hidden", "one LSTM layer: hidden", read_lstm},
    ListedKind{"batch_norm", "", "of an image's channels: eps 1e-5, momentum 0.1", read_batch_norm},
    ListedKind{"layer_norm", "", "of the last dimension: eps 1e-5", read_layer_norm},
    ListedKind{"rms_norm", "", "of the last dimension: eps 1e-5", read_rms_norm},
    ListedKind{"instance_norm", "", "of each channel of each image: eps 1e-5", read_instance_norm},
    ListedKind{"dropout", "probability", "probability 0.5", read_dropout},
    ListedKind{"channel_dropout", "probability", "of whole channels: probability 0.5",
               read_channel_dropout},
    ListedKind{"relu", "", "max(x, 0)", read_activation<Activation::Relu>},
    ListedKind{"relu6", "", "relu, at most 6", read_activation<Activation::Relu6>},
    ListedKind{"leaky_relu", "", "0.01 x below 0", read_activation<Activation::LeakyRelu>},
    ListedKind{"tanh", "", "hyperbolic tangent", read_activation<Activation::Tanh>},
    ListedKind{"gelu", "", "exact", read_activation<Activation::Gelu>},
    ListedKind{"gelu_tanh", "", "gelu by tanh, as GPT-2's", read_activation<Activation::GeluTanh>},
    ListedKind{"silu", "", "x σ(x)", read_activation<Activation::Silu>},
    ListedKind{"relu2", "", "max(x, 0)²", read_activation<Activation::Relu2>},
    ListedKind{"swiglu", "hidden", "a gated MLP: hidden, bias false", read_swiglu},
    ListedKind{"bound", "c", "c x/√(x² + c²): c 15", read_bound},
    ListedKind{"max_pool", "kernel", "kernel 2, stride kernel, padding 0", read_max_pool},
    ListedKind{"average_pool", "kernel", "kernel 2, stride kernel, padding 0", read_average_pool},
    ListedKind{"average_pool_to", "size", "adaptive average pooling: size 1", read_average_pool_to},
    ListedKind{"upsample", "factor", "repeats each pixel: factor 2", read_upsample},
    ListedKind{"average_over_tokens", "", "the mean of a sample's vectors",
               read_average_over_tokens},
    ListedKind{"first_token", "", "the vector of the first token", read_first_token},
    ListedKind{"flatten", "", "all numbers of a sample in one row", read_flatten},
};
constexpr std::array<const char*, 2> kContainers{"residual", "repeat"};

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const ListedKind& kind : kKinds) names.emplace_back(kind.name);
  for (const std::string& name : Registry<LayerKind>::instance().names()) names.push_back(name);
  names.insert(names.end(), kContainers.begin(), kContainers.end());
  return names;
}

/// Reads a layer of a registered kind.
ReadLayer reading(const Registry<LayerKind>::Make& make) {
  return [&make](Options& options, const SampleShape& before) -> Step {
    const std::shared_ptr<const LayerKind> kind = make(options);
    if (std::string wants = kind->refusal(before); !wants.empty()) return refused(std::move(wants));
    return {[kind, before] { return kind->make(before); }, kind->after(before), {}};
  };
}

/// Reads lists of layers; stops at the first layer that is wrong.
class Reader {
 public:
  Reader(Options& given, std::string path) : given_(given), path_(std::move(path)) {}

  /// Appends the layers of a list to `all` and moves `shape` behind them; false: one was wrong.
  bool read(const Value& list, SampleShape& shape, std::vector<ListedLayer>& all) {
    if (!list.is(Value::Kind::Sequence))
      return wrong(list, "is ", list.shown(), "; expected a list of layers");
    return std::ranges::all_of(list.items,
                               [&](const Value& item) { return read_item(item, shape, all); });
  }

 private:
  template <class... Parts>
  bool wrong(const Value& value, const Parts&... message) {
    given_.problem_at(value.place, concat(path_, " ", message...));
    return false;
  }

  bool read_item(const Value& item, SampleShape& shape, std::vector<ListedLayer>& all) {
    static const Value kNothing = Value::mapping();
    const bool by_name = item.is(Value::Kind::Text);
    if (!by_name && (!item.is(Value::Kind::Mapping) || item.fields.size() != 1))
      return wrong(item, "has ", item.shown(),
                   "; expected a layer, such as `relu` or `{conv: {out: 16}}`");
    const std::string& name = by_name ? item.text : item.fields.front().first;
    const Value& options = by_name ? kNothing : item.fields.front().second;
    if (name == "repeat") return read_repeat(item, options, shape, all);
    if (++layers_ > kMostLayers) return wrong(item, "has more than ", kMostLayers, " layers");
    if (name == "residual") return read_residual(item, options, shape, all);
    const auto* const kind = std::ranges::find(
        kKinds, name, [](const ListedKind& each) { return std::string(each.name); });
    if (kind != kKinds.end())
      return read_kind(name, kind->first, kind->read, item, options, shape, all);
    if (const auto* const registered = Registry<LayerKind>::instance().find(name))
      return read_kind(name, "", reading(registered->make), item, options, shape, all);
    const std::vector<std::string> names = all_names();
    return wrong(item, "has no layer '", name, "'; expected ", join(names, ", "),
                 did_you_mean(name, names), plugin_hint(name, names));
  }

  bool read_kind(const std::string& name, const char* first, const ReadLayer& read_layer,
                 const Value& item, const Value& options, SampleShape& shape,
                 std::vector<ListedLayer>& all) {
    Value named = options;
    if (!options.is(Value::Kind::Mapping)) {
      if (*first == '\0' && !options.is(Value::Kind::Null))
        return wrong(options, "gives ", name, " ", options.shown(),
                     "; it has no option to stand alone");
      named = Value::mapping();
      named.place = options.place;
      if (!options.is(Value::Kind::Null)) named.at_or_add(first) = options;
    }
    Problems problems;
    Options own(&named, concat(path_, ".", name), problems);
    const Step step = read_layer(own, shape);
    own.finish();
    given_.add(problems);
    if (!problems.empty()) return false;
    if (!step.make)
      return wrong(item, "has ", name, " behind ", shape.text(), ", but it ", step.wants);
    if (elements_of(step.after) > kMostElements)
      return wrong(item, "has ", name, " that makes ", step.after.text(),
                   ", more than 2^40 numbers a sample");
    shape = step.after;
    all.push_back({step.make, shape});
    return true;
  }

  /// {residual: [layers]}, or {residual: {layers: [], shortcut: [], activation: relu}}.
  bool read_residual(const Value& item, const Value& options, SampleShape& shape,
                     std::vector<ListedLayer>& all) {
    const Value* body = options.is(Value::Kind::Mapping) ? options.find("layers") : &options;
    const Value* shortcut = options.find("shortcut");
    const Value* then = options.find("activation");
    for (const auto& [key, value] : options.fields)
      if (key != "layers" && key != "shortcut" && key != "activation")
        return wrong(value, "has residual.", key, "; expected layers, shortcut or activation");
    if (body == nullptr) return wrong(item, "has a residual without `layers`");
    std::vector<ListedLayer> inner, beside;
    SampleShape through = shape, around = shape;
    if (!read(*body, through, inner) || (shortcut != nullptr && !read(*shortcut, around, beside)))
      return false;
    if (through.sizes != around.sizes || through.vocabulary != around.vocabulary)
      return wrong(item, "has a residual whose layers make ", through.text(), " of ", shape.text(),
                   ", and whose shortcut makes ", around.text(), "; expected equal shapes");
    if (through.is_tokens()) return wrong(item, "has a residual of tokens; expected numbers");
    Activation activation = Activation::Identity;
    if (then != nullptr && then->text == "relu")
      activation = Activation::Relu;
    else if (then != nullptr && then->text != "identity")
      return wrong(*then, "has residual.activation ", then->shown(), "; expected relu or identity");
    shape = through;
    all.push_back({[inner, beside, activation] {
                     return residual(in_a_row(inner), beside.empty() ? nullptr : in_a_row(beside),
                                     activation);
                   },
                   shape});
    return true;
  }

  bool read_repeat(const Value& item, const Value& options, SampleShape& shape,
                   std::vector<ListedLayer>& all) {
    const Value* times = options.find("times");
    const Value* layers = options.find("layers");
    if (times == nullptr || layers == nullptr || options.fields.size() != 2 ||
        (layers->is(Value::Kind::Sequence) && layers->items.empty()))
      return wrong(item, "has a repeat; expected {repeat: {times: 4, layers: […]}}");
    if (!times->is(Value::Kind::Integer) || times->integer < 1 ||
        times->integer > static_cast<std::int64_t>(kMostLayers))
      return wrong(*times, "has repeat.times ", times->shown(),
                   "; expected a whole number from 1 to ", kMostLayers);
    for (std::int64_t i = 0; i < times->integer; ++i)
      if (!read(*layers, shape, all)) return false;
    return true;
  }

  static LayerPtr in_a_row(const std::vector<ListedLayer>& layers) {
    std::vector<NamedLayer> children;
    for (std::size_t i = 0; i < layers.size(); ++i)
      children.emplace_back(std::to_string(i), layers[i].make());
    return sequence(std::move(children));
  }

  Options& given_;
  std::string path_;
  std::size_t layers_ = 0;  ///< of the whole model, those inside of others, too
};

}  // namespace

std::optional<std::vector<ListedLayer>> read_layer_list(Options& given, const SampleShape& input) {
  const Value list =
      given.any("layers", Value::sequence(), concat("The layers, in order. ", layer_list_help()));
  std::vector<ListedLayer> all;
  SampleShape shape = input;
  if (!Reader(given, "model.layers").read(list, shape, all)) return {};
  return all;
}

std::string layer_list_help() {
  std::string text =
      "Each is a name (relu), {name: {options}}, or {name: value} for its first option. Known are ";
  for (const ListedKind& kind : kKinds) text += concat(kind.name, " (", kind.help, "), ");
  const Registry<LayerKind>& registered = Registry<LayerKind>::instance();
  for (const std::string& name : registered.names())
    text += concat(name, " (", registered.find(name)->summary, "), ");
  return text +
         "residual ([layers], added to their input; or {layers, shortcut, activation: relu}), and "
         "repeat ({times, layers}).";
}

}  // namespace pipewright
