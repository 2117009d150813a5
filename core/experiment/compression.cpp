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
  named.name = options.choice("name", registry.names(), kNone,
                              "The codec; `pipewright list codecs` names them all.");
  std::shared_ptr<const Codec> codec = registry.find(named.name)->make(options);
  if (named.name != kNone) named.codec = std::move(codec);
  return named;
}

/// Reads the section of one direction; without it the direction has the codec of both.
NamedCodec read_direction(Options& options, const char* direction, const NamedCodec& both) {
  if (!options.given(direction)) return both;
  Options own = options.section(direction, "The codec of this direction alone.");
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
  codecs.in_evaluation =
      options.flag("in_evaluation", true, "Compress forwards in evaluation, too.");
  const std::vector<std::int64_t> listed = options.integers(
      "edges", {},
      "Which edges, each numbered as the stage before it; [] = all. Those not listed are not "
      "compressed, or as a section `otherwise` like this one says.",
      edges.empty() ? kNotNegative : Range{0, static_cast<double>(edges.size()) - 1});
  std::vector<int> rest;
  for (const int edge : open) {
    if (listed.empty() || std::ranges::count(listed, edge) > 0)
      edges[static_cast<std::size_t>(edge)] = codecs;
    else
      rest.push_back(edge);
  }
  if (!options.given("otherwise")) return;
  if (rest.empty()) options.problem("otherwise", "no edge is left for it; list fewer in `edges`");
  Options otherwise =
      options.section("otherwise", "How the edges that are not listed are compressed.");
  read_edges(otherwise, std::move(rest), edges);
  otherwise.finish();
}

}  // namespace

Compression read_compression(Options& pipeline, int stages) {
  Options options = pipeline.section(
      "compression",
      "What crosses an edge can be compressed, in both directions or, with sections `forward` and "
      "`backward`, in each by its own codec.");
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
      "What replicas exchange of their gradients. With one replica there is nothing to exchange, "
      "and this does nothing.");
  const bool powersgd =
      options.choice("name", {kNone, "powersgd"}, kNone,
                     "none: the gradients as they are; powersgd: two thin factors of each weight's "
                     "gradient, with error feedback; parameters of one dimension, and weights that "
                     "factors would not make smaller, as they are.") == "powersgd";
  const std::int64_t rank =
      options.integer("rank", 4, "Of powersgd: columns of a factor.", kPositive);
  options.finish();
  return {.rank = powersgd ? rank : 0};
}

}  // namespace pipewright
