// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/slices.h"

#include "core/base/error.h"
#include "core/schedule/dependencies.h"

namespace pipewright {
namespace {

/// Whether the scheme takes slices in the order in which they need each other.
bool takes_in_order(const Experiment& e) {
  const Schedule schedule = e.scheme->schedule(e.shape(1));
  return slice_out_of_order(schedule, PassIndex(schedule)) == kNowhere;
}

}  // namespace

void check_slices(const Experiment& e, const Value& document, Problems& problems) {
  const int slices = e.pipeline.slices;
  if (slices == 1) return;
  const auto refuse = [&](const char* option, const std::string& why) {
    problems.add(place_in(document, option), concat("pipeline.slices is ", slices, "; ", why),
                 ErrorKind::Experiment);
  };
  if (!e.model->runs_in_slices())
    refuse("pipeline.slices",
           "slices need a causal model, in which no token sees a later one; expected model: {name: "
           "gpt}, or slices: 1");
  if (!e.scheme->auxiliary_sites(e.pipeline.stages).empty())
    refuse("scheme",
           "slices need a scheme with one loss, that of the last stage; expected scheme: {name: "
           "seq1f1b}");
  else if (!takes_in_order(e))
    refuse("scheme",
           "a slice gives a gradient to the keys of the slices before it, so backwards have to go "
           "from the last slice of a micro-batch to the first, and this scheme's do not; expected "
           "scheme: {name: seq1f1b}, or gpipe");
  if (!e.pipeline.compression.empty())
    refuse("pipeline.compression",
           "codecs keep and draw by samples, not by slices of them; expected no "
           "pipeline.compression, or slices: 1");
  if (e.pipeline.offload)
    refuse("pipeline.offload",
           "keys of a slice cannot be on the host while later slices read them; expected "
           "pipeline.offload: never, or slices: 1");
  if (!e.probes.empty())
    refuse("probes", "probes measure passes of whole samples; expected no probes, or slices: 1");
}

}  // namespace pipewright
