/// Which process of which machine one is talking to.
#pragma once

#include <string>

namespace pipewright {

struct ProcessIdentity {
  int process = 0;    ///< its number; 0: not known yet
  std::string space;  ///< the boot and the PID namespace that the number belongs to; "": not known
  std::string host;   ///< for messages: two machines or containers may share a name
};

ProcessIdentity own_identity();

/// Whether that process has ended, as far as can be seen from here: false for a process of another
/// machine or another PID namespace, where its number means another process or none.
bool has_ended(const ProcessIdentity& other);

}  // namespace pipewright
