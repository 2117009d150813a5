// SPDX-License-Identifier: Apache-2.0
/// Messages from the processes of a run to the launcher: where a process is while MPI connects the
/// team or ends, when processes cannot speak to each other, and that one has reported an error.
/// A word is a datagram to a socket of the launcher that has a name but no file. A process that
/// does not reach it, for example on another machine, says nothing.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "core/system/descriptor.h"

namespace pipewright {

/// How far the start of a process has come.
struct StartWord {
  enum class Step {
    Begun,   ///< it is about to begin MPI
    Speaks,  ///< it reports failures of the team from now on
    Said,    ///< it has reported the error that ends the run
    Ends,    ///< it has done its work, and is about to end with the others
  };
  Step step = Step::Begun;
  int rank = 0;

  bool operator==(const StartWord&) const = default;
};

/// The launcher's end.
class StartEar {
 public:
  /// Throws Error{Worker} if the system has no socket left.
  StartEar();

  /// The environment variable that tells the started processes where to speak to.
  std::pair<std::string, std::string> variable() const;
  /// A word that has come from a process of this user; does not wait. Other datagrams are dropped.
  std::optional<StartWord> hear() const;

 private:
  Descriptor socket_;
  std::string name_;
};

/// Says a word to the launcher. False where there is none, or it cannot be reached.
bool say_at_start(const StartWord& word);

}  // namespace pipewright
