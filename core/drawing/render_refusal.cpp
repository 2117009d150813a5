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
    throw Error(ErrorKind::Schedule,
                concat(invalid.message(), "\n", render_text(schedule, options)), invalid.where());
  }
}

}  // namespace pipewright
