// SPDX-License-Identifier: Apache-2.0
/// Notes: short texts that the processes of a team exchange besides their messages. A wire may
/// damage them, so every field is checked when it is read.
#pragma once

#include <chrono>
#include <string>
#include <variant>

#include "core/base/error.h"
#include "core/processes/process_identity.h"

namespace pipewright {

/// The first note of each process.
struct HelloNote {
  ProcessIdentity process;
};
struct HeartbeatNote {
  std::chrono::milliseconds still{0};  ///< time it has waited without a piece moving
  std::string activity;                ///< "stage 1, 1F7"
};
/// The sender failed, or noticed that another process did.
struct FailureNote {
  Error error;
  int speaker = 0;  ///< the process that reports to the user
};
/// The sender is about to end after a failure.
struct FarewellNote {};
/// The sender has done its work and waits for the others to have done theirs. It beats no more.
struct FinishedNote {};

using TeamNote = std::variant<HelloNote, HeartbeatNote, FailureNote, FarewellNote, FinishedNote>;

std::string note_text(const TeamNote& note);
/// Reads a note of a team of so many `processes`. Throws Error{Worker} without a place if the text
/// is not a note.
TeamNote parsed_note(const std::string& text, int processes);

}  // namespace pipewright
