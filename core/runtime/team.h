/// The processes that train one experiment together. A single process is a team of one and holds
/// every worker; with `mpi` process r holds worker r. Only process 0 prints and keeps the run
/// folder.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace pipewright {

/// All members call the collective functions in the same order. They throw Error when a member has
/// failed or does not answer.
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
};

}  // namespace pipewright
