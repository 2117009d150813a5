// SPDX-License-Identifier: Apache-2.0
#include "core/stability/measured_curvature.h"

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/system/file.h"

namespace pipewright {
namespace {

constexpr std::string_view kHeader = "epoch,minibatch,stage,probe,quantity,value";

template <class Number>
Number number_of(const std::string& text, std::string_view name, const std::string& where) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw Error(ErrorKind::Data, concat(name, " is '", text, "'; expected a number"), where);
  return number;
}

}  // namespace

MeasuredCurvature read_curvature(const std::filesystem::path& probes, bool preconditioned) {
  const std::vector<std::string> lines = split(read_file(probes), '\n');
  if (lines.front() != kHeader)
    throw Error(ErrorKind::Data, concat("begins with '", lines.front(), "'; expected ", kHeader),
                concat(probes.string(), ":1"));
  MeasuredCurvature measured;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    const std::string where = concat(probes.string(), ":", i + 1);
    const std::vector<std::string> fields = split(lines[i], ',');
    if (fields.size() != 6)
      throw Error(ErrorKind::Data, concat("has ", fields.size(), " fields; expected 6"), where);
    if (fields[3] != "sharpness" || fields[4] != (preconditioned ? "preconditioned" : "largest"))
      continue;
    const auto value = number_of<double>(fields[5], "value", where);
    if (fields[2].empty())
      measured.model = value;
    else
      measured.stages[number_of<int>(fields[2], "stage", where)] = value;
  }
  return measured;
}

}  // namespace pipewright
