// SPDX-License-Identifier: Apache-2.0
#include "models/graph/graph_file.h"

#include <algorithm>
#include <set>

#include "core/base/error_at.h"
#include "core/base/text.h"
#include "core/config/json.h"
#include "core/tensor_files/safetensors.h"

namespace pipewright {
namespace {

using Kind = Value::Kind;

constexpr std::int64_t kGraphFormat = 1;
constexpr std::int64_t kMostElements = std::int64_t{1} << 40;  // of a tensor
constexpr std::size_t kMostDimensions = 16;

constexpr std::array<std::pair<std::string_view, at::ScalarType>, 7> kGraphTypes{{
    {"float64", at::kDouble},
    {"float32", at::kFloat},
    {"float16", at::kHalf},
    {"bfloat16", at::kBFloat16},
    {"int64", at::kLong},
    {"int32", at::kInt},
    {"bool", at::kBool},
}};

/// Reads values of the file; each error has the place it was given.
struct GraphReader {
  std::string where;

  [[noreturn]] void fail(const std::string& message) const { throw data_error(where, message); }

  const Value& field(const Value& of, const std::string& name, Kind kind) const {
    const Value* found = of.find(name);
    if (found == nullptr) fail(concat("'", name, "' is missing"));
    if (!found->is(kind)) fail(concat("'", name, "' is ", found->described()));
    return *found;
  }

  std::string text(const Value& of, const std::string& name) const {
    return field(of, name, Kind::Text).text;
  }

  std::vector<std::int64_t> shape(const std::string& name, const Value& given) const {
    if (!given.is(Kind::Sequence) || given.items.size() > kMostDimensions)
      fail(
          concat("the shape of '", name, "' is ", given.described(), "; expected a list of sizes"));
    std::vector<std::int64_t> sizes;
    std::int64_t elements = 1;
    for (const Value& size : given.items) {
      if (!size.is(Kind::Integer) || size.integer < 0 || size.integer > kMostElements ||
          (size.integer > 0 && elements > kMostElements / size.integer))
        fail(concat("the shape of '", name, "' has the size ", size.shown(),
                    "; expected whole numbers whose product is at most 2^40"));
      elements *= std::max<std::int64_t>(1, size.integer);
      sizes.push_back(size.integer);
    }
    return sizes;
  }

  std::map<std::string, std::vector<std::int64_t>> shapes(const Value& of,
                                                          const std::string& name) const {
    std::map<std::string, std::vector<std::int64_t>> all;
    for (const auto& [tensor, sizes] : field(of, name, Kind::Mapping).fields) {
      if (tensor.empty()) fail(concat("'", name, "' has a tensor without a name"));
      if (!all.emplace(tensor, shape(tensor, sizes)).second)
        fail(concat("'", name, "' has '", tensor, "' twice"));
    }
    return all;
  }

  at::ScalarType type(const Value& of) const {
    const std::string name = text(of, "type");
    if (const auto known = graph_type(name)) return *known;
    std::vector<std::string> known;
    for (const auto& each : kGraphTypes) known.emplace_back(each.first);
    fail(concat("there is no type '", name, "'", suggestion(name, known)));
  }

  GraphSize size(const Value& given) const {
    constexpr std::int64_t kMost = std::int64_t{1} << 31;
    const bool fits =
        given.is(Kind::Sequence) && given.items.size() == 2 &&
        std::ranges::all_of(given.items, [](const Value& each) {
          return each.is(Kind::Integer) && each.integer >= -kMost && each.integer <= kMost;
        });
    if (!fits)
      fail(concat("a size is ", given.described(),
                  "; expected [factor, constant], each at most 2^31: factor x batch + constant"));
    return {given.items[0].integer, given.items[1].integer};
  }

  GraphOutput output(const Value& given) const {
    GraphOutput made{.name = text(given, "name"), .shape = {}, .type = type(given)};
    const Value& sizes = field(given, "shape", Kind::Sequence);
    if (sizes.items.size() > kMostDimensions)
      fail(concat("'", made.name, "' has ", sizes.items.size(), " dimensions; expected at most ",
                  kMostDimensions));
    for (const Value& each : sizes.items) made.shape.push_back(size(each));
    return made;
  }

  GraphInput input(const Value& given) const {
    GraphInput made;
    made.name = text(given, "name");
    made.type = type(given);
    made.shape.push_back({1, 0});
    for (const std::int64_t size : shape(made.name, field(given, "shape", Kind::Sequence)))
      made.shape.push_back({0, size});
    made.vocabulary = field(given, "vocabulary", Kind::Integer).integer;
    return made;
  }

  /// The first says what the data set is: of tokens, or of numbers.
  GraphInput first_input(const Value& given) const {
    GraphInput made = input(given);
    if (made.shape.size() < 2)
      fail(concat("the shape of '", made.name, "' is empty; expected sizes"));
    if (made.vocabulary < 0 || (made.vocabulary > 0) != (made.type == at::kLong))
      fail(concat("'vocabulary' is ", made.vocabulary,
                  "; expected a positive number where the input is int64, else 0"));
    return made;
  }

  GraphInput further_input(const Value& given) const {
    GraphInput made = input(given);
    const bool known = made.type == at::kFloat || made.type == at::kDouble ||
                       made.type == at::kLong || made.type == at::kBool;
    if (!known)
      fail(concat("the type of '", made.name, "' is ", text(given, "type"),
                  "; expected float32, float64, int64 or bool"));
    if (made.vocabulary < 0 || (made.vocabulary > 0 && made.type != at::kLong))
      fail(concat("the 'vocabulary' of '", made.name, "' is ", made.vocabulary,
                  "; expected 0, or a positive number where the input is int64"));
    return made;
  }
};

/// Checks that every reference of a node is to something that exists before it.
void check_references(const GraphReader& reader, const GraphFile& file, const GraphNode& node,
                      const std::set<std::string>& made) {
  const auto check = [&](const GraphReference& reference) {
    const auto& [kind, name] = reference;
    const bool exists = kind == "value"       ? made.contains(name)
                        : kind == "parameter" ? file.parameters.contains(name)
                        : kind == "buffer"    ? file.buffers.contains(name)
                                              : file.constants.contains(name);
    if (!exists) reader.fail(concat("there is no ", kind, " '", name, "' before it"));
  };
  for (const auto& [name, argument] : node.arguments) for_each_reference(argument, check);
}

GraphNode read_node(const GraphReader& reader, const Value& given) {
  GraphNode node;
  node.name = reader.text(given, "operator");
  node.overload = reader.text(given, "overload");
  node.schema = reader.text(given, "schema");
  node.module = reader.text(given, "module");
  node.where = concat(reader.where, " (", node.name, " of module '", node.module, "')");
  const GraphReader inside{node.where};
  node.arguments = inside.field(given, "arguments", Kind::Mapping).fields;
  for (const Value& output : inside.field(given, "outputs", Kind::Sequence).items)
    node.outputs.push_back(inside.output(output));
  if (node.outputs.empty()) inside.fail("'outputs' is empty; expected a tensor at least");
  return node;
}

std::set<std::string> input_names(const std::string& path, const GraphFile& file) {
  std::set<std::string> names;
  for (const GraphInput& input : file.inputs)
    if (input.name.empty() || !names.insert(input.name).second)
      GraphReader{path}.fail(
          concat("has two inputs of the name '", input.name, "', or one without a name"));
  return names;
}

void read_nodes(const std::string& path, const Value& document, GraphFile& file) {
  std::set<std::string> made = input_names(path, file);
  const std::set<std::string> given = made;
  std::size_t number = 0;
  for (const Value& each : GraphReader{path}.field(document, "nodes", Kind::Sequence).items) {
    const GraphReader reader{concat(path, ", node ", number++)};
    GraphNode node = read_node(reader, each);
    const GraphReader inside{node.where};
    check_references(inside, file, node, made);
    for (const GraphOutput& output : node.outputs)
      if (!made.insert(output.name).second)
        inside.fail(concat("the value '", output.name, "' is made twice"));
    file.nodes.push_back(std::move(node));
  }
  if (file.nodes.empty()) GraphReader{path}.fail("'nodes' is empty");
  if (!made.contains(file.output) || given.contains(file.output))
    GraphReader{path}.fail(concat("no node makes the output '", file.output, "'"));
}

void read_constants(const GraphReader& reader, const Value& document, const FindConstant& find,
                    GraphFile& file) {
  for (const Value& name : reader.field(document, "constants", Kind::Sequence).items) {
    if (!name.is(Kind::Text)) reader.fail("'constants' has a name that is no text");
    file.constants.emplace(name.text, find(name.text));
  }
}

}  // namespace

std::vector<std::int64_t> GraphInput::sample_shape() const {
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 1; i < shape.size(); ++i) sizes.push_back(shape[i][1]);
  return sizes;
}

GraphReference reference_of(const Value& argument) {
  if (!argument.is(Kind::Mapping) || argument.fields.size() != 1) return {};
  const auto& [kind, name] = argument.fields.front();
  const bool known =
      kind == "value" || kind == "parameter" || kind == "buffer" || kind == "constant";
  if (!known || !name.is(Kind::Text)) return {};
  return {kind, name.text};
}

std::optional<at::ScalarType> graph_type(std::string_view name) {
  for (const auto& [each, type] : kGraphTypes)
    if (each == name) return type;
  return {};
}

GraphFile graph_of(const Value& document, const std::string& path, const FindConstant& constant) {
  const GraphReader reader{path};
  if (!document.is(Kind::Mapping))
    reader.fail(concat("is ", document.described(), "; expected a graph"));
  const std::int64_t format = reader.field(document, "format", Kind::Integer).integer;
  if (format != kGraphFormat)
    reader.fail(concat("has format ", format, "; this program reads format ", kGraphFormat,
                       ", which its tools/import_torch.py writes"));
  GraphFile file;
  file.torch = reader.text(document, "torch");
  file.inputs.push_back(reader.first_input(reader.field(document, "input", Kind::Mapping)));
  if (document.find("further_inputs") != nullptr)
    for (const Value& each : reader.field(document, "further_inputs", Kind::Sequence).items)
      file.inputs.push_back(reader.further_input(each));
  file.output = reader.text(document, "output");
  file.output_shape =
      reader.shape("output", reader.field(document, "output_shape", Kind::Sequence));
  if (file.output_shape.empty() || file.output_shape.back() < 1)
    reader.fail("'output_shape' is empty; expected the classes last");
  file.parameters = reader.shapes(document, "parameters");
  file.buffers = reader.shapes(document, "buffers");
  read_constants(reader, document, constant, file);
  read_nodes(path, document, file);
  return file;
}

GraphFile read_graph(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "constants.safetensors";
  std::optional<TensorFile> tensors;  // read when the first is asked for
  return graph_of(load_json(folder / "graph.json"), (folder / "graph.json").string(),
                  [&](const std::string& name) {
                    if (!tensors) tensors = read_safetensors(path);
                    if (const at::Tensor* found = tensors->find(name)) return *found;
                    throw data_error(path, "has no constant '", name, "', which graph.json names");
                  });
}

}  // namespace pipewright
