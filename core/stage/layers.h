/// The primitive layers models are made of, and the ways to compose them. Initialisation is
/// PyTorch's default unless said otherwise. Images are [batch, channels, height, width]. All work
/// in float32 and float64, on any device; on `meta` forward only, for shapes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/stage/layer.h"

namespace pipewright {

enum class Activation : std::uint8_t {
  Identity,
  Relu,
  Relu6,
  LeakyRelu,  ///< 0.01 x below 0
  Tanh,
  Gelu,     ///< exact, by erf
  GeluTanh  ///< x/2 (1 + tanh(√(2/π) (x + 0.044715 x³))), as GPT-2's
};
at::Tensor activate(Activation activation, const at::Tensor& x);
/// The same into x itself, which must be a fresh output whose own backward does not need it: that
/// of a linear, convolution or batch-norm layer. Saves one tensor per activation.
at::Tensor activate_in_place(Activation activation, at::Tensor x);

struct LinearOptions {
  double init_std = 0;  ///< > 0: weight normal(0, init_std), bias 0; else both uniform ±1/√in
  std::optional<Initializer> weight, bias_init;  ///< in place of these
  Activation activation = Activation::Identity;  ///< of the output
  bool flatten = false;  ///< the input is first made [batch, in], whatever its shape
  bool bias = true;
};
/// y = activation(x Wᵀ + b), on the last dimension. weight [out, in], bias [out].
LayerPtr linear(std::int64_t in, std::int64_t out, LinearOptions options = {});

struct ConvolutionOptions {
  std::int64_t kernel = 3, stride = 1, padding = 0;
  /// Along the width, where it differs from the height's.
  std::optional<std::int64_t> kernel_width, stride_width, padding_width;
  std::int64_t groups = 1;  ///< of channels, each convolved by itself; divides both counts
  bool bias = true;
  bool kaiming_fan_out = true;  ///< normal(0, √(2/(out·k²))), bias 0; else PyTorch's uniform
  bool uniform_bias = false;  ///< bias uniform ±1/√(in/groups·k²) even so, as PyTorch leaves it
  std::optional<Initializer> weight;  ///< in place of these
};
/// weight [out, in / groups, k, k], bias [out].
LayerPtr convolution(std::int64_t in, std::int64_t out, ConvolutionOptions options);

/// weight and bias [channels]; buffers running_mean, running_var; statistics of the micro-batch in
/// training, running ones in evaluation; running variance unbiased, as PyTorch's, moved by each
/// micro-batch or, with Pass::deferred, by the mini-batch. Training on one
/// value per channel throws Error{Experiment}: its variance does not exist.
LayerPtr batch_norm(std::int64_t channels, double eps = 1e-5, double momentum = 0.1,
                    double initial_weight = 1);

/// y = (x − mean)/√(var + eps), statistics of each channel of each sample, variance biased; the
/// same in training and evaluation. Images of one pixel throw Error{Experiment}.
LayerPtr instance_norm(double eps = 1e-5);

/// y = weight (x − mean)/√(var + eps) + bias, statistics of each row of the last dimension,
/// variance biased. weight and bias [width].
LayerPtr layer_norm(std::int64_t width, double eps = 1e-5);

struct EmbeddingOptions {
  double init_std = 1;
  std::int64_t zero_row = -1;  ///< ≥ 0: that row starts at 0 and never has a gradient (padding)
};
/// Row x of weight [tokens, width] for each int64 x: [batch, …] to [batch, …, width].
LayerPtr embedding(std::int64_t tokens, std::int64_t width, EmbeddingOptions options = {});

/// Every token attends to every token, as torch.nn.MultiheadAttention of x with itself, with its
/// parameters' names, shapes and initialisation. x and y [batch, tokens, width]; the columns of
/// head h are h·d … (h+1)·d, d = width / heads, which must divide.
///   q, k, v = x in_proj_weightᵀ + in_proj_bias, one after another; [3·width, width], [3·width]
///   y = concat over heads of dropout(softmax(q kᵀ / √d)) v, times out_proj.weightᵀ + out_proj.bias
LayerPtr self_attention(std::int64_t width, std::int64_t heads, double dropout_probability = 0);

/// A layer and the name it goes by within another.
using NamedLayer = std::pair<std::string, LayerPtr>;

struct AttentionOptions {
  double dropout = 0;   ///< of the softmax
  bool causal = false;  ///< no token attends to those after it
  bool masked = false;  ///< looks at the last tensor put aside, bool [batch, tokens], true where a
                        ///< token may be attended to; a token that attends to none gets zeros
};
/// The same with projections of one's own, their parameters "<name>.weight", …: three that give q,
/// k and v, or one that gives them one after another.
LayerPtr attention(std::vector<NamedLayer> projections, NamedLayer output, std::int64_t heads,
                   AttentionOptions options = {});

/// Of int64 tokens [batch, tokens]; int64, to be embedded.
LayerPtr positions();    ///< 0, 1, …, [1, tokens]: the same for every sample
LayerPtr token_types();  ///< 0, [1, 1]: all tokens are of the first type
/// padding + 1, padding + 2, … for the tokens that are not `padding`, and `padding` for those that
/// are: RoBERTa's, [batch, tokens].
LayerPtr positions_of_words(std::int64_t padding);
/// What linear(positions, width) gives for the first rows of the identity, [1, tokens, width].
LayerPtr linear_of_positions(std::int64_t positions, std::int64_t width,
                             LinearOptions options = {});

/// Puts bool [batch, tokens] aside: false where the token is `padding`.
LayerPtr mask_padding(std::int64_t padding);
/// [batch, tokens, width] to [batch, width]. Other tensors end here, of which so many were put
/// aside.
LayerPtr first_token(int others = 0);
/// One LSTM layer from a zero state: [batch, T, in] to [batch, T, hidden]. Gates in the order i, f,
/// g, o; weight_ih_l0 [4·hidden, in], weight_hh_l0 [4·hidden, hidden], bias_ih_l0 and bias_hh_l0
/// [4·hidden], all uniform ±1/√hidden. Is Incremental.
///   c = σ(f) c + σ(i) tanh(g),   h = σ(o) tanh(c)
LayerPtr lstm(std::int64_t in, std::int64_t hidden);
/// One in each direction, side by side: [batch, T, in] to [batch, T, 2·hidden]; the second one's
/// parameters end in "_reverse". The second tensor, int64 [batch], says how many tokens of each
/// sample are real: the way back starts at the last of them, and outputs beyond are 0, as of
/// PyTorch's packed sequences.
LayerPtr bidirectional_lstm(std::int64_t in, std::int64_t hidden);

/// Normalised additive attention (Bahdanau et al., 2015; normalised as in TensorFlow's seq2seq) of
/// each target place over the source: {queries [batch, T, width], memory [batch, S, width], lengths
/// int64 [batch]} to {queries, context [batch, T, width]}. Memory beyond a sample's length counts
/// for nothing. Is Incremental, and gives the attention.
///   score(q, m) = g/|a| aᵀ tanh(W_q q + W_k m + b),   context = Σ over m of softmax(score) m
/// linear_q.weight and linear_k.weight [width, width], linear_att a [width], normalize_scalar g
/// [1], which starts at 1/√width, normalize_bias b [width], at 0.
LayerPtr additive_attention(std::int64_t width);

/// `in_place`: for use inside a composite layer, under activate_in_place()'s condition.
LayerPtr activation(Activation kind, bool in_place = false);
/// `ceil`: a last window that begins in the image but ends beyond it and its padding counts too.
LayerPtr max_pool(std::int64_t kernel, std::int64_t stride, std::int64_t padding = 0,
                  bool ceil = false);
/// `count_padding`: padding counts as zeros in the mean; else only the values there are.
LayerPtr average_pool(std::int64_t kernel, std::int64_t stride, std::int64_t padding = 0,
                      bool count_padding = true);
/// Adaptive average pooling to size × size.
LayerPtr average_pool_to(std::int64_t size);
/// Each pixel `factor` times along height and width.
LayerPtr upsample_nearest(std::int64_t factor);
/// Mean over dimension 1: [batch, tokens, width] to [batch, width].
LayerPtr average_over_tokens();
LayerPtr flatten();  ///< everything but the batch into one dimension

/// Inverted dropout. The mask of element e of sample s is a function of (seed, layer name, epoch,
/// mini-batch, position of s in the mini-batch, e): no cut, micro-batch, replica or order changes
/// it.
LayerPtr dropout(double probability);
/// The same of whole channels of images: element e of a sample is its channel e.
LayerPtr channel_dropout(double probability);

/// Skip connections. stash() puts a copy of the first tensor behind all others; the other two take
/// the last one back: activation(x + shortcut(stashed)), the shortcut's parameters under
/// "shortcut."; or channels of x, then of the stashed, x padded with zeros at its bottom and right
/// to fit. In a model that is cut, what is put aside goes straight to the stage that takes it back,
/// and its gradient straight back; stages between never see it.
LayerPtr stash();
LayerPtr add_stashed(LayerPtr shortcut = nullptr, Activation activation = Activation::Relu);
LayerPtr concatenate_stashed();

/// The layers one after another, as one layer. Child c's parameters are "<name_c>.weight", or
/// "weight" where name_c is "". Its own full name, which keys its random streams, is
/// "<this>.<name_c>", or "<this>.<c>" where name_c is "".
LayerPtr sequence(std::vector<NamedLayer> children);

/// The sum of what the layers give for the first tensor, which broadcast; names as in sequence().
LayerPtr sum_of(std::vector<NamedLayer> children);

/// The outputs of several layers on one input, joined along the channels (dimension 1) in the order
/// given; nullptr stands for the input itself. Names as sequence()'s.
LayerPtr concatenate(std::vector<NamedLayer> branches);

/// activation(body(x) + shortcut(x)); without a shortcut the input itself is added. Parameters of
/// `body` keep their names, those of `shortcut` are under "shortcut.".
LayerPtr residual(LayerPtr body, LayerPtr shortcut = nullptr,
                  Activation activation = Activation::Relu);

}  // namespace pipewright
