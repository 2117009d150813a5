/// The processes that train one experiment together. A single process is a team of one and holds
/// every worker; with `mpi` process r holds worker r. Only process 0 prints and keeps the run
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

/// All members call the collective functions in the same order. They throw the team's Error once a
/// member has failed, died or fallen silent, and Error{Interrupted} after a signal.
class Team {
 public:
  virtual ~Team() = default;
  virtual int rank() const { return 0; }
  virtual int size() const { return 1; }
  bool first() const { return rank() == 0; }
  /// Whether this process executes that worker.
  bool holds(int worker) const { return size() == 1 || worker == rank(); }

  /// Collective: nobody returns before everybody has called it.
  virtual void barrier() {}
  /// Collective: every member gets the sums, added in order of rank.
  virtual void sum(std::span<double> values) { static_cast<void>(values); }
  /// Collective: process 0 gets everybody's bytes in order of rank; the others nothing.
  virtual std::vector<std::string> gather(std::string bytes) { return {std::move(bytes)}; }
  /// Collective: how this process's worker, on the device `own`, exchanges messages with the
  /// others'; null in a team of one.
  virtual std::unique_ptr<Transport> transport(const Program& program, at::Device own);
  /// Until a device has done what it was given, asking it again and again; throws as the collective
  /// functions do.
  virtual void wait_for_device(const std::function<bool()>& done);
  /// What this process is doing ("2F17"), so that others can say so if it dies; {} = nothing.
  virtual void set_activity(std::function<std::string()> activity) { static_cast<void>(activity); }

  /// This process's work ended with `error`; the others are told. Returns what the whole team ends
  /// with: the first member's error, or that somebody died where a signal seemed to be the reason.
  virtual Error settle(const Error& error) { return error; }
  /// After settle(): whether this process is the one that tells the user.
  virtual bool speaks() { return true; }
  /// Called from another thread when this process's work does not react to a failure: the process
  /// ends after it. `speaks`: as speaks().
  virtual void set_emergency(std::function<void(const Error&, bool speaks)> report) {
    static_cast<void>(report);
  }
};

}  // namespace pipewright
