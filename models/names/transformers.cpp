/// Hugging Face's names of Transformers. Files of the bare models lack the first part of the names.
#include "core/stage/files/foreign_names.h"

namespace pipewright {
namespace {

/// RobertaForSequenceClassification. What pretrained files have besides, for other tasks, is not
/// used: the head that fills gaps, the pooler.
ForeignNames roberta(const Value&) {
  return {.names = {{"^embeddings\\.", "roberta.embeddings."},
                    {"^layer\\.", "roberta.encoder.layer."},
                    {"^head\\.", "classifier."}},
          .instead = {{"^roberta\\.", ""}},
          .ignored = {"(roberta\\.)?embeddings\\.position_ids", "(roberta\\.)?pooler\\..*",
                      "lm_head\\..*"}};
}

/// GPT2LMHeadModel, whose Conv1D has linear layers' weights transposed. Where the output has no
/// weight of its own, it starts as the token embedding.
ForeignNames gpt(const Value&) {
  return {.names = {{"^embeddings\\.", "transformer."},
                    {"^h\\.", "transformer.h."},
                    {"^final\\.", "transformer.ln_f."},
                    {"^head\\.", "lm_head."}},
          .instead = {{"^lm_head\\.", "transformer.wte."}, {"^transformer\\.", ""}},
          .transposed = {"\\.c_(attn|proj|fc)\\.weight$"},
          .ignored = {"(transformer\\.)?h\\.\\d+\\.attn\\.(masked_)?bias"}};
}

PIPEWRIGHT_FOREIGN_NAMES(roberta, huggingface, roberta);
PIPEWRIGHT_FOREIGN_NAMES(gpt, huggingface, gpt);

}  // namespace
}  // namespace pipewright
