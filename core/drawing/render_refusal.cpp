// SPDX-License-Identifier: Apache-2.0
#include "core/drawing/render_refusal.h"

#include "core/drawing/render.h"
#include "core/schedule/validate.h"

namespace pipewright {

std::vector<ActionPlace> validate_for_eyes(const Schedule& schedule) {
  try {
    return validate(schedule);
  } catch (const InvalidSchedule& invalid) {
    const ActionPlace culprit = invalid.culprit();
    const RenderOptions options{
        .width = 120, .minibatches = 8, .culprit = culprit == kNowhere ? nullptr : &culprit};
    throw Error(ErrorKind::Schedule,
                concat(invalid.message(), "\n", render_text(schedule, options)), invalid.where());
  }
}

}  // namespace pipewright
