// SPDX-License-Identifier: Apache-2.0
#include "core/drawing/render_refusal.h"

#include <utility>

#include "core/drawing/render.h"

namespace pipewright {

ProvedSchedule prove_for_eyes(Schedule&& schedule) {
  try {
    return prove(std::move(schedule));
  } catch (const InvalidSchedule& invalid) {
    const ActionPlace culprit = invalid.culprit();
    const RenderOptions options{
        .width = 120, .minibatches = 8, .culprit = culprit == kNowhere ? nullptr : &culprit};
    std::string drawing;
    try {
      drawing = concat("\n", render_text(schedule, options));
    } catch (const Error&) {  // no memory holds it
    }
    throw Error(ErrorKind::Schedule, concat(invalid.message(), drawing), invalid.where());
  }
}

}  // namespace pipewright
