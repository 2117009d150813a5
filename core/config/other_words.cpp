// SPDX-License-Identifier: Apache-2.0
#include "core/config/other_words.h"

#include <algorithm>
#include <array>

#include "core/base/text.h"

namespace pipewright {
namespace {

struct Word {
  std::string_view ours;
  std::string_view theirs;  ///< with a space between
};

constexpr auto kWords = std::to_array<Word>({
    {"lr", "learning_rate max_lr"},
    {"betas", "momentum beta1 beta2"},
    {"eps", "epsilon"},
    {"weight_decay", "wd"},
    {"warmup", "warmup_steps"},
    {"stages", "num_stages pp pp_size pipeline_parallel_size pipeline_model_parallel_size"},
    {"microbatches", "num_microbatches chunks gradient_accumulation_steps"},
    {"replicas", "dp dp_size data_parallel_size"},
    {"balance", "partition"},
    {"recompute", "gradient_checkpointing activation_checkpointing recompute_activations"},
    {"epochs", "num_epochs num_train_epochs max_epochs"},
    {"steps", "max_steps num_steps num_iterations train_iters"},
    {"batch_size", "train_batch_size global_batch_size"},
    {"seed", "random_seed"},
    {"precision", "dtype torch_dtype"},
    {"classes", "num_classes num_labels"},
    {"channels", "in_channels"},
    {"size", "image_size img_size"},
    {"vocabulary", "vocab_size"},
    {"tokens", "seq_length block_size max_position_embeddings"},
    {"width", "hidden_size d_model n_embd"},
    {"layers", "num_layers n_layer num_hidden_layers"},
    {"heads", "num_heads n_head num_attention_heads"},
    {"float32", "fp32"},
    {"float16", "fp16"},
    {"bfloat16", "bf16"},
    {"binary_cross_entropy", "bce"},
    {"l1", "mae"},
    {"cosine", "cosine_annealing"},
});

constexpr std::string_view kOfClipping =
    "max_grad_norm clip_grad grad_clip gradient_clipping gradient_clip_val";

bool has_word(std::string_view words, const std::string& word) {
  const std::vector<std::string> all = split(words, ' ');
  return std::ranges::count(all, word) > 0;
}

}  // namespace

std::string our_word(const std::string& word, std::span<const std::string> known) {
  for (const auto& [ours, theirs] : kWords)
    if (std::ranges::count(known, ours) > 0 && has_word(theirs, word)) return std::string(ours);
  return {};
}

std::string rule_for_word(const std::string& word) {
  return has_word(kOfClipping, word) ? "; write gradient_rules: [{name: clip, norm: …}]" : "";
}

}  // namespace pipewright
