// SPDX-License-Identifier: Apache-2.0
/// Hugging Face's names for Transformers. Files of bare models lack the first part of the names.
#include "core/tensor_files/foreign_names.h"

namespace pipewright {
namespace {

/// The names of RobertaForSequenceClassification. Tensors that pretrained files have for other
/// tasks are ignored: the masked-language-model head and the pooler.
ForeignNames roberta(const Value&) {
  return {.names = {{"^embeddings\\.", "roberta.embeddings."},
                    {"^layer\\.", "roberta.encoder.layer."},
                    {"^head\\.", "classifier."}},
          .instead = {{"^roberta\\.", ""}},
          .ignored = {"(roberta\\.)?embeddings\\.position_ids", "(roberta\\.)?pooler\\..*",
                      "lm_head\\..*"}};
}

/// The names of GPT2LMHeadModel, whose Conv1D layers store transposed weights. If a file has no
/// weight for the output layer, the token embedding's is loaded.
ForeignNames gpt(const Value&) {
  return {.names = {{"^embeddings\\.", "transformer."},
                    {"^h\\.", "transformer.h."},
                    {"^final\\.", "transformer.ln_f."},
                    {"^head\\.", "lm_head."}},
          .instead = {{"^lm_head\\.", "transformer.wte."}, {"^transformer\\.", ""}},
          .transposed = {"\\.c_(attn|proj|fc)\\.weight$"},
          .ignored = {"(transformer\\.)?h\\.\\d+\\.attn\\.(masked_)?bias"}};
}

/// The names of LlamaForCausalLM. If a file has no weight for the output layer, the token
/// embedding's is loaded.
ForeignNames decoder(const Value&) {
  return {.names = {{"^embeddings\\.tokens\\.", "model.embed_tokens."},
                    {"^layers\\.", "model.layers."},
                    {"^norm\\.", "model.norm."}},
          .instead = {{"^lm_head\\.", "model.embed_tokens."}, {"^model\\.", ""}},
          .ignored = {"(model\\.)?layers\\.\\d+\\.self_attn\\.rotary_emb\\.inv_freq"}};
}

PIPEWRIGHT_FOREIGN_NAMES(roberta, huggingface, roberta);
PIPEWRIGHT_FOREIGN_NAMES(gpt, huggingface, gpt);
PIPEWRIGHT_FOREIGN_NAMES(decoder, huggingface, decoder);

}  // namespace
}  // namespace pipewright
