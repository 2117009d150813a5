// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/compression.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"

namespace pipewright {
namespace {

constexpr const char* kNone = "none";

/// Reads a codec: `{name: …, options…}`.
NamedCodec read_codec(Options& options) {
  const Registry<Codec>& registry = Registry<Codec>::instance();
  NamedCodec named;
  named.name = options.part("name", registry.names(), kNone,
                            "Name of the codec; `pipewright list codecs` shows all.");
  std::shared_ptr<const Codec> codec = registry.find(named.name)->make(options);
  if (named.name != kNone) named.codec = std::move(codec);
  return named;
}

/// Reads the section of one direction; without it the direction has the codec of both.
NamedCodec read_direction(Options& options, const char* direction, const NamedCodec& both) {
  if (!options.given(direction)) return both;
  Options own = options.section(direction, "Codec of this direction alone.");
  NamedCodec named = read_codec(own);
  own.finish();
  return named;
}

/// Sets the codecs of those edges of `open` that the section lists (all, without a list). The rest
/// follows the section `otherwise`.
void read_edges(Options& options, std::vector<int> open, Compression& edges) {
  const NamedCodec both = read_codec(options);
  EdgeCodecs codecs{.forward = read_direction(options, "forward", both),
                    .backward = read_direction(options, "backward", both)};
  codecs.in_evaluation = options.flag("in_evaluation", true,
                                      "Whether the forwards of an evaluation are compressed, too.");
  const std::vector<std::int64_t> listed = options.integers(
      "edges", {},
      "Edges that are compressed, each numbered as the stage before it; [] = all. The others are "
      "not, unless a section `otherwise`, with options like these, says how.",
      edges.empty() ? kNotNegative : Range{0, static_cast<double>(edges.size()) - 1});
  std::vector<int> rest;
  for (const int edge : open) {
    if (listed.empty() || std::ranges::count(listed, edge) > 0)
      edges[static_cast<std::size_t>(edge)] = codecs;
    else
      rest.push_back(edge);
  }
  if (!options.given("otherwise")) return;
  if (rest.empty()) options.problem("otherwise", "has no edge left; list fewer in `edges`");
  Options otherwise = options.section("otherwise", "Compression of the edges that are not listed.");
  read_edges(otherwise, std::move(rest), edges);
  otherwise.finish();
}

}  // namespace

Compression read_compression(Options& pipeline, int stages) {
  Options options = pipeline.section(
      "compression",
      "Compression of activations and gradients between stages. Sections `forward` and `backward` "
      "give each direction a codec of its own.");
  Compression edges(static_cast<std::size_t>(stages - 1));
  std::vector<int> all(edges.size());
  std::iota(all.begin(), all.end(), 0);
  read_edges(options, std::move(all), edges);
  options.finish();
  const bool none = std::ranges::all_of(
      edges, [](const EdgeCodecs& edge) { return !edge.forward.codec && !edge.backward.codec; });
  return none ? Compression() : edges;
}

GradientCompression read_gradient_compression(Options& pipeline) {
  Options options = pipeline.section(
      "gradient_compression",
      "Compression of the gradients that replicas exchange. It does nothing with one replica.");
  const bool powersgd =
      options.choice("name", {kNone, "powersgd"}, kNone,
                     "none: whole gradients are exchanged; powersgd: two thin factors of each "
                     "weight's gradient, with error feedback. Parameters of one dimension, and "
                     "weights that factors would not make smaller, are exchanged whole.") ==
      "powersgd";
  const std::int64_t rank = options.integer(
      "rank", 4, "powersgd: rank of the approximation, the columns of a factor.", kPositive);
  options.finish();
  return {.rank = powersgd ? rank : 0};
}

}  // namespace pipewright
