// SPDX-License-Identifier: Apache-2.0
/// Identity of a process among those of all machines of a run.
#pragma once

#include <string>

namespace pipewright {

struct ProcessIdentity {
  int process = 0;    ///< process id; 0: not known yet
  std::string space;  ///< boot id and PID namespace in which the process id is valid; "": unknown
  std::string host;   ///< for error messages only: two machines or containers may share a name;
                      ///< "": not known yet
};

ProcessIdentity own_identity();

/// Whether that process has ended, as far as this one can see: always false for a process on
/// another machine or in another PID namespace, where its process id means another process or none.
bool has_ended(const ProcessIdentity& other);

}  // namespace pipewright
