/// What the processes of a team tell each other beside their messages, as short texts. What comes
/// over a wire may be damaged: nothing that is read here is believed unchecked.
#pragma once

#include <chrono>
#include <string>
#include <variant>

#include "core/base/error.h"
#include "core/runtime/processes/process_identity.h"

namespace pipewright {

/// Told once, at the beginning.
struct HelloNote {
  ProcessIdentity process;
};
struct HeartbeatNote {
  std::chrono::milliseconds still{0};  ///< for how long it has waited, and no piece has moved
  std::string activity;                ///< "stage 1, 1F7"
};
/// The sender failed, or has noticed that another did.
struct FailureNote {
  Error error;
  int speaker = 0;  ///< the process that tells the user
};
/// The sender ends.
struct FarewellNote {};

using TeamNote = std::variant<HelloNote, HeartbeatNote, FailureNote, FarewellNote>;

std::string note_text(const TeamNote& note);
/// `processes`: how many there are. Throws Error{Worker} without a place where the text is no note.
TeamNote parsed_note(const std::string& text, int processes);

}  // namespace pipewright
