// SPDX-License-Identifier: Apache-2.0
/// The results of simulating every point of a sweep: plain values, from which the best are
/// chosen, tables printed and maps drawn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/config/value.h"

namespace pipewright {

/// One point of the sweep.
struct SimulatedPoint {
  enum class State : std::uint8_t {
    Fits,      ///< simulated, and every device has the memory, as far as memories are known
    TooLarge,  ///< simulated, but some device has too little memory
    Refused    ///< cannot be simulated: the scheme cannot have this shape, or devices are missing
  };

  std::string title;          ///< as `check` prints it, and `--point` takes it
  std::string candidate;      ///< what is compared: the point's label, else its scheme
  std::vector<Value> values;  ///< parallel to SimulatedSweep::keys; Null: the point has none
  State state = State::Refused;
  std::string reason;  ///< why it does not fit or is refused
  int workers = 0;     ///< 0: not known, of some that are refused

  // The rest is of points that were simulated.
  int minibatches = 0;  ///< that were simulated
  bool steady = false;  ///< whether its pace and peaks are those of a steady pipeline
  double seconds = 0;   ///< per mini-batch in the steady part
  double samples_per_second = 0;
  double bubble = 0;                     ///< idle share of all workers' time in the steady part
  std::vector<std::int64_t> peaks;       ///< bytes of each worker when it holds most
  std::int64_t bytes_per_minibatch = 0;  ///< over all links together

  bool simulated() const { return state != State::Refused; }
  bool fits() const { return state == State::Fits; }
  std::int64_t largest_peak() const;  ///< 0 without workers
};

struct SimulatedSweep {
  std::string name;                     ///< of the experiment
  std::vector<std::string> keys;        ///< dotted keys that vary, in the file's order
  std::vector<SimulatedPoint> points;   ///< in the sweep's order
  std::vector<std::string> costs_from;  ///< origins of the costs in words, each once
  std::vector<std::string> untimed;     ///< codecs whose time the hardware does not say

  std::size_t count(SimulatedPoint::State state) const;
  /// The text of a point's value of a key; "workers" is the number of its workers. "–" for none.
  std::string text_of(const SimulatedPoint& point, const std::string& key) const;
};

}  // namespace pipewright
