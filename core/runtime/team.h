// SPDX-License-Identifier: Apache-2.0
/// The processes that train one experiment together. A single process is a team of one and holds
/// every worker; with `mpi` process r holds worker r. Only process 0 prints and writes the run
/// folder.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace pipewright {

struct Program;
class Transport;

/// All members must call the collective functions in the same order. These throw the team's Error
/// once a member has failed, died or fallen silent, and Error{Interrupted} after a signal.
class Team {
 public:
  virtual ~Team() = default;
  virtual int rank() const { return 0; }
  virtual int size() const { return 1; }
  bool first() const { return rank() == 0; }
  /// Whether this process executes that worker.
  bool holds(int worker) const { return size() == 1 || worker == rank(); }

  /// Collective: returns once every member has called it.
  virtual void barrier() {}
  /// Collective: every member gets the sums, added in order of rank.
  virtual void sum(std::span<double> values) { static_cast<void>(values); }
  /// Collective: process 0 gets the bytes of all in order of rank, the others get none.
  virtual std::vector<std::string> gather(std::string bytes) { return {std::move(bytes)}; }
  /// Collective: creates the transport of this process's worker, whose device is `own`; null in a
  /// team of one. `within`: a program whose transport is in use meanwhile; null: none.
  virtual std::unique_ptr<Transport> transport(const Program& program, at::Device own,
                                               const Program* within);
  /// Polls `done` until a device has finished its work. Throws as the collective functions do.
  virtual void wait_for_device(const std::function<bool()>& done);
  /// Sets the function that names this process's current action ("2F17"). If the process dies, the
  /// others report its last name. {}: no action.
  virtual void set_activity(std::function<std::string()> activity) { static_cast<void>(activity); }

  /// Reports to the team that this process's work ended with `error`. Returns the error with which
  /// the whole team ends: the first member's, or the death of a member if that caused the signal.
  virtual Error agree_on(const Error& error) { return error; }
  /// After agree_on(): whether this process prints the error for the user.
  virtual bool reports_to_user() { return true; }
  /// Sets a function that another thread calls if this process's work does not react to a failure;
  /// afterwards the process ends. `speaks` has the meaning of reports_to_user().
  virtual void set_emergency(std::function<void(const Error&, bool speaks)> report) {
    static_cast<void>(report);
  }
};

}  // namespace pipewright
