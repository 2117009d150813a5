// SPDX-License-Identifier: Apache-2.0
/// The primitive layers that models are made of, and the ways to compose them. Initialisation is
/// PyTorch's default unless stated otherwise. Images are [batch, channels, height, width]. All
/// layers work in float32, float64 and mixed precision (precision.h) on any device; on `meta` only
/// forwards run, for shapes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/config/options.h"
#include "core/nn/layer.h"

namespace pipewright {

enum class Activation : std::uint8_t {
  Identity,
  Relu,
  Relu6,
  LeakyRelu,  ///< 0.01 x below 0
  Tanh,
  Gelu,      ///< exact, by erf
  GeluTanh,  ///< x/2 (1 + tanh(√(2/π) (x + 0.044715 x³))), as GPT-2's
  Silu,      ///< x σ(x)
  Relu2      ///< max(x, 0)²
};
at::Tensor activate(Activation activation, const at::Tensor& x);
/// Writes the activation into x itself, which saves memory. x must be a fresh output that its own
/// backward does not need, as of a linear, convolution or batch-norm layer.
at::Tensor activate_in_place(Activation activation, at::Tensor x);

struct LinearOptions {
  double init_std = 0;  ///< > 0: weight normal(0, init_std), bias 0; else both uniform ±1/√in
  std::optional<Initializer> weight, bias_init;  ///< replace the initialisation above
  Activation activation = Activation::Identity;  ///< applied to the output
  bool flatten = false;                          ///< the input is first reshaped to [batch, in]
  bool bias = true;
};
/// y = activation(x Wᵀ + b), on the last dimension. weight [out, in], bias [out].
LayerPtr linear(std::int64_t in, std::int64_t out, LinearOptions options = {});

struct ConvolutionOptions {
  std::int64_t kernel = 3, stride = 1, padding = 0;
  /// Along the width; by default as along the height.
  std::optional<std::int64_t> kernel_width, stride_width, padding_width;
  std::int64_t groups = 1;  ///< of channels, each convolved separately; divides both channel counts
  bool bias = true;
  /// Weight normal(0, √(2/(out·k²))) and bias 0; otherwise both uniform ±1/√(in/groups·k²).
  bool kaiming_fan_out = true;
  bool uniform_bias = false;          ///< the bias is uniform even with kaiming_fan_out
  std::optional<Initializer> weight;  ///< replaces the weight's initialisation
};
/// Convolves images. weight [out, in / groups, k, k], bias [out].
LayerPtr convolution(std::int64_t in, std::int64_t out, ConvolutionOptions options);

/// Normalises each channel with the statistics of the micro-batch in training and with running
/// statistics in evaluation. weight and bias [channels]; buffers running_mean and running_var
/// (unbiased, as PyTorch's), updated by each micro-batch or, with Pass::deferred, once per
/// mini-batch. Training on one value per channel, which has no variance, throws Error{Experiment}.
LayerPtr batch_norm(std::int64_t channels, double eps = 1e-5, double momentum = 0.1,
                    double initial_weight = 1);

/// y = (x − mean)/√(var + eps), with mean and biased variance of each channel of each sample, in
/// training and in evaluation. Images of one pixel throw Error{Experiment}.
LayerPtr instance_norm(double eps = 1e-5);

/// y = weight (x − mean)/√(var + eps) + bias, with mean and biased variance of each row of the last
/// dimension. weight and bias [width].
LayerPtr layer_norm(std::int64_t width, double eps = 1e-5);

/// y = weight x/√(mean of x² + eps) over each row of the last dimension (Zhang & Sennrich, 2019).
/// weight [width].
LayerPtr rms_norm(std::int64_t width, double eps = 1e-5);

struct EmbeddingOptions {
  double init_std = 1;
  std::int64_t zero_row = -1;  ///< ≥ 0: that row starts at 0 and never has a gradient (padding)
};
/// Maps each int64 x to row x of weight [tokens, width]: [batch, …] to [batch, …, width].
LayerPtr embedding(std::int64_t tokens, std::int64_t width, EmbeddingOptions options = {});

/// Self-attention of all tokens, as torch.nn.MultiheadAttention of x with itself: the same
/// parameters' names, shapes and initialisation. x and y [batch, tokens, width]; head h has the
/// columns [h·d, (h+1)·d), d = width / heads. `heads` must divide `width`.
///   q, k, v = x in_proj_weightᵀ + in_proj_bias, one after another; [3·width, width], [3·width]
///   y = concat over heads of dropout(softmax(q kᵀ / √d)) v, times out_proj.weightᵀ + out_proj.bias
LayerPtr self_attention(std::int64_t width, std::int64_t heads, double dropout_probability = 0);

/// A layer and its name within the layer that contains it.
using NamedLayer = std::pair<std::string, LayerPtr>;

/// Angles by which queries and keys are rotated (Su et al., 2021): that of pair i at position p is
/// p base^(−i/n) for the first n pairs, a `share` of all, and 0 for the others.
struct RotaryOptions {
  double base = 10'000;
  double share = 1;           ///< of the pairs that are rotated
  bool reaches_base = false;  ///< the slowest rotates by p/base: the exponents are −i/(n − 1)
};

struct AttentionOptions {
  double dropout = 0;   ///< probability, applied to the softmax
  bool causal = false;  ///< no token attends to those after it
  bool masked = false;  ///< peeks at the top of the skip stack, bool [batch, tokens]: true where a
                        ///< token may be attended to. A token that may attend to none gets zeros
  std::int64_t key_heads = 0;  ///< of keys and values, each for heads / key_heads queries; 0: heads
  double scale = 0;            ///< of the scores; 0: 1/√d
  std::optional<double> norm_eps;  ///< queries and keys are divided by √(mean of squares + this)
  std::optional<RotaryOptions> rotary;  ///< then rotated
};
/// Self-attention with the given projections, whose parameters are "<name>.weight", …: either three
/// that give q, k and v, or one that gives them concatenated.
LayerPtr attention(std::vector<NamedLayer> projections, NamedLayer output, std::int64_t heads,
                   AttentionOptions options = {});

/// positions() and token_types() map int64 tokens [batch, tokens] to int64 indices for an
/// embedding.
LayerPtr positions();    ///< 0, 1, …, [1, tokens]: the same for every sample
LayerPtr token_types();  ///< 0, [1, 1]: all tokens are of the first type
/// RoBERTa's positions [batch, tokens]: padding + 1, padding + 2, … for the tokens that are not
/// `padding`, and `padding` for those that are.
LayerPtr positions_of_words(std::int64_t padding);
/// linear(positions, width) applied to the first rows of the identity: [1, tokens, width].
LayerPtr linear_of_positions(std::int64_t positions, std::int64_t width,
                             LinearOptions options = {});

/// Pushes a skip tensor, bool [batch, tokens]: false where the token is `padding`.
LayerPtr mask_padding(std::int64_t padding);
/// Selects the first token: [batch, tokens, width] to [batch, width]. Drops all other tensors at
/// the boundary; `others` of them are skip tensors, which it pops.
LayerPtr first_token(int others = 0);
/// One LSTM layer from a zero state: [batch, T, in] to [batch, T, hidden]. Gates in the order i, f,
/// g, o; weight_ih_l0 [4·hidden, in], weight_hh_l0 [4·hidden, hidden], bias_ih_l0 and bias_hh_l0
/// [4·hidden], all uniform ±1/√hidden. Is Incremental.
///   c = σ(f) c + σ(i) tanh(g),   h = σ(o) tanh(c)
LayerPtr lstm(std::int64_t in, std::int64_t hidden);
/// Two LSTMs, one per direction, with concatenated outputs: [batch, T, in] to [batch, T, 2·hidden].
/// The backward one's parameters end in "_reverse". The second input, int64 [batch], is the number
/// of real tokens of each sample: the backward LSTM starts at the last of them, and later outputs
/// are 0, as with PyTorch's packed sequences.
LayerPtr bidirectional_lstm(std::int64_t in, std::int64_t hidden);

/// Normalised additive attention (Bahdanau et al., 2015; normalised as in TensorFlow's seq2seq) of
/// each target position over the source: {queries [batch, T, width], memory [batch, S, width],
/// lengths int64 [batch]} to {queries, context [batch, T, width]}. Memory beyond a sample's length
/// is masked. Is Incremental and sets Carried::attention.
///   score(q, m) = g/|a| aᵀ tanh(W_q q + W_k m + b),   context = Σ over m of softmax(score) m
/// Parameters: linear_q.weight and linear_k.weight [width, width], linear_att = a [width],
/// normalize_scalar = g [1], initially 1/√width, and normalize_bias = b [width], initially 0.
LayerPtr additive_attention(std::int64_t width);

/// With `in_place` it overwrites its input: only inside a composite layer, and under the condition
/// of activate_in_place().
LayerPtr activation(Activation kind, bool in_place = false);
/// y = c x/√(x² + c²), which lies between −c and c.
LayerPtr bound(double c);
/// With `ceil`, a last window that begins inside the image but ends beyond image and padding gives
/// an output as well.
LayerPtr max_pool(std::int64_t kernel, std::int64_t stride, std::int64_t padding = 0,
                  bool ceil = false);
/// With `count_padding`, padding counts as zeros in the mean; otherwise the mean is over the
/// image's values only.
LayerPtr average_pool(std::int64_t kernel, std::int64_t stride, std::int64_t padding = 0,
                      bool count_padding = true);
/// Adaptive average pooling to size × size.
LayerPtr average_pool_to(std::int64_t size);
/// Repeats each pixel `factor` times along height and width.
LayerPtr upsample_nearest(std::int64_t factor);
/// Mean over dimension 1: [batch, tokens, width] to [batch, width].
LayerPtr average_over_tokens();
LayerPtr flatten();  ///< [batch, …] to [batch, product of the rest]

/// Inverted dropout. The mask of element e of sample s is a function of (seed, layer name, epoch,
/// mini-batch, position of s in the mini-batch, e): no cut, micro-batch, replica or order changes
/// it.
LayerPtr dropout(double probability);
/// Inverted dropout of whole channels of images: element e of a sample is its channel e.
LayerPtr channel_dropout(double probability);

/// Skip connections over the stack of skip tensors. stash() pushes the first tensor x; the other
/// two pop the top tensor s. add_stashed() gives activation(x + shortcut(s)), with the shortcut's
/// parameters under "shortcut."; concatenate_stashed() gives the channels of x, padded with zeros
/// at the bottom and right to the size of s, then those of s. In a cut model a pushed tensor is
/// sent directly to the stage that pops it, and its gradient directly back; stages in between never
/// see it.
LayerPtr stash();
LayerPtr add_stashed(LayerPtr shortcut = nullptr, Activation activation = Activation::Relu);
LayerPtr concatenate_stashed();

/// What a layer shares with others. `parameter` is a name within the layer.
struct Sharing {
  /// Parameters that later layers read, too: it pushes them as skip tensors, in this order.
  std::vector<std::string> lends = {};
  /// Parameters in whose place it reads what an earlier layer has lent, the top of the stack first:
  /// it pops `takes` and peeks at `looks`.
  std::vector<std::string> takes = {}, looks = {};
  struct Copy {
    std::string parameter, name;  ///< it has this name instead
    std::string of;               ///< the full name of the parameter that it begins as
    bool gradients = false;       ///< the two apply each other's (ParameterSpec::copied)
  };
  std::vector<Copy> copies = {};
};
/// The layer, under its name, which shares parameters so. Lender and borrower read what the owner's
/// forward has read: the same version, the same prediction. In a cut model the borrowing stage has
/// a copy of what it was sent, and the gradient goes back to the owner (Skip::lent_bytes). The
/// layer may use no other skip tensors.
LayerPtr sharing(LayerPtr layer, Sharing shares);

/// The option `tie` of a model in which several layers may share a parameter.
enum class Tie : std::uint8_t { None, Start, Same, Late };
Tie read_tie(Options& options, const std::string& help);

/// Runs the layers one after another, as one layer. The parameters of child c are
/// "<name_c>.weight", or "weight" if name_c is "". The child's full name, which keys its random
/// streams, is "<this>.<name_c>", or "<this>.<c>" if name_c is "".
LayerPtr sequence(std::vector<NamedLayer> children);

/// The sum of the layers' outputs for the first tensor, with broadcasting; names as in sequence().
LayerPtr sum_of(std::vector<NamedLayer> children);
/// Their product, alike.
LayerPtr product_of(std::vector<NamedLayer> children);

/// Concatenates the outputs of several layers on one input along the channels (dimension 1), in the
/// given order. nullptr stands for the input itself. Names as in sequence().
LayerPtr concatenate(std::vector<NamedLayer> branches);

/// activation(body(x) + shortcut(x)); without a shortcut x itself is added. Parameters of `body`
/// keep their names; those of `shortcut` are under "shortcut.".
LayerPtr residual(LayerPtr body, LayerPtr shortcut = nullptr,
                  Activation activation = Activation::Relu);

}  // namespace pipewright
