// SPDX-License-Identifier: Apache-2.0
/// Words of PyTorch, Hugging Face, DeepSpeed, Megatron-LM, Lightning and torchgpipe for our options
/// and choices, so that messages can name ours. Private to config.
#pragma once

#include <span>
#include <string>

namespace pipewright {

/// Which of the known names a word of another program stands for: "stages" for "num_stages", and
/// "betas" for "momentum" where there is no momentum; "" for none of them.
std::string our_word(const std::string& word, std::span<const std::string> known);

/// What to write for an option of another program that is a gradient rule here; "" for others.
std::string rule_for_word(const std::string& word);

}  // namespace pipewright
