// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/weights_file.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "core/base/error_at.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/tensor_files/safetensors.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

using Shape = std::vector<std::int64_t>;

constexpr std::size_t kShownDifferences = 8;  // differences listed

NameTranslation translation(const WeightsFile& file) {
  return NameTranslation(file.names.value_or(ForeignNames{}));
}

/// Where the tensor of our name may be in the file.
ForeignTensor source_of(const std::string& name, const WeightsFile& file,
                        const NameTranslation& translated) {
  ForeignTensor source = file.names ? translated.theirs(name) : ForeignTensor{{name}};
  if (const auto first = file.begins_as.find(name); first != file.begins_as.end())
    std::ranges::copy(source_of(first->second, file, translated).names,
                      std::back_inserter(source.names));
  return source;
}

bool is_of(const std::string& name, const std::string& layer) {
  return name.starts_with(layer + ".");
}

bool is_fresh(const std::string& name, const WeightsFile& file) {
  return std::ranges::any_of(file.fresh, [&](const auto& layer) { return is_of(name, layer); });
}

/// Reports fresh layers that the model does not have.
void check_fresh(const WeightsFile& file, const NamedShapes& declared,
                 std::vector<std::string>& wrong) {
  std::vector<std::string> layers;
  for (const auto& [name, shape] : declared) layers.push_back(name.substr(0, name.rfind('.')));
  for (const std::string& fresh : file.fresh)
    if (std::ranges::none_of(declared,
                             [&](const auto& entry) { return is_of(entry.first, fresh); }))
      wrong.push_back(concat("model.fresh names '", fresh, "', which the model does not have",
                             suggestion(fresh, layers)));
}

/// The first of a tensor's possible names that the file has, or end().
template <class Given>
typename Given::const_iterator first_of(const ForeignTensor& source, const Given& given) {
  for (const std::string& name : source.names)
    if (const auto found = given.find(name); found != given.end()) return found;
  return given.end();
}

/// Why the file's tensor cannot be the model's tensor of that shape; "" if it can.
std::string misfit(const TensorHeader& given, const Shape& shape) {
  if (given.shape != shape)
    return concat("'", given.name, "' has the shape ", shape_text(given.shape),
                  ", the model's has ", shape_text(shape));
  if (!at::isFloatingType(given.type))
    return concat("'", given.name, "' holds whole numbers (", c10::toString(given.type),
                  "), the model's holds floating-point numbers; convert the tensor if this is the "
                  "right file");
  return {};
}

/// Lists the tensors of a weights file that are missing, left over, or of another shape or type.
std::vector<std::string> differences(const WeightsFile& file, const NamedShapes& declared) {
  const std::vector<TensorHeader> tensors = read_safetensors_header(file.path);
  std::map<std::string, const TensorHeader*> given;
  for (const TensorHeader& tensor : tensors) given.emplace(tensor.name, &tensor);
  const NameTranslation translated = translation(file);
  std::vector<std::string> wrong, names;
  std::set<std::string> used;
  check_fresh(file, declared, wrong);
  for (auto [name, shape] : declared) {
    const ForeignTensor source = source_of(name, file, translated);
    if (source.names.empty()) continue;
    names.push_back(source.names.front());
    if (is_fresh(name, file)) {
      used.insert(source.names.begin(), source.names.end());
      continue;
    }
    if (source.transposed) std::ranges::reverse(shape);
    const auto found = first_of(source, given);
    if (found == given.end()) {
      wrong.push_back(concat("'", names.back(), "' is not in the file"));
      continue;
    }
    used.insert(found->first);
    if (std::string why = misfit(*found->second, shape); !why.empty())
      wrong.push_back(std::move(why));
  }
  for (const TensorHeader& tensor : tensors) {
    if (used.contains(tensor.name) || translated.ignores(tensor.name)) continue;
    const bool shown = wrong.size() < kShownDifferences;  // suggestions take time
    const std::string meant = shown ? suggestion(tensor.name, names) : std::string();
    wrong.push_back(concat("'", tensor.name, "' is in the file, but not in the model",
                           meant.starts_with("; did") ? meant : std::string()));
  }
  return wrong;
}

/// What all names of the model have before them in the file, such as "module."; "" if nothing.
std::string prefix_of(const WeightsFile& file, const NamedShapes& declared) {
  const NameTranslation translated = translation(file);
  std::set<std::string> given;
  for (const TensorHeader& tensor : read_safetensors_header(file.path)) given.insert(tensor.name);
  std::vector<std::string> wanted;
  for (const auto& [name, shape] : declared)
    if (const ForeignTensor source = source_of(name, file, translated);
        !source.names.empty() && !is_fresh(name, file))
      wanted.push_back(source.names.front());
  if (wanted.empty()) return {};
  for (const std::string& name : given) {
    if (!name.ends_with("." + wanted.front())) continue;
    const std::string prefix = name.substr(0, name.size() - wanted.front().size());
    if (std::ranges::all_of(wanted,
                            [&](const auto& each) { return given.contains(prefix + each); }))
      return prefix;
  }
  return {};
}

/// Refuses a file in which copies of one parameter differ, and to take only one of them from it.
void check_copies(const WeightsFile& file, const std::map<std::string, at::Tensor>& given,
                  const NameTranslation& translated) {
  for (const auto& [name, first] : file.begins_as) {
    const auto one = first_of(source_of(name, file, translated), given),
               other = first_of(source_of(first, file, translated), given);
    const bool fresh = is_fresh(name, file);
    if (fresh != is_fresh(first, file))
      throw data_error(file.path, "has '", fresh ? name : first,
                       "', which model.fresh names, and '", fresh ? first : name,
                       "', which it does not, and model.tie: late makes them "
                       "copies of one parameter; expected both in model.fresh, or none");
    if (fresh || one == given.end() || other == given.end() ||
        at::equal(one->second, other->second.to(one->second.scalar_type())))
      continue;
    throw data_error(file.path, "'", one->first, "' and '", other->first,
                     "' differ, and model.tie: late makes them copies of one parameter; expected "
                     "tie: none or start, or a file with one of them");
  }
}

}  // namespace

void check_weights(const WeightsFile& file, const NamedShapes& declared) {
  std::vector<std::string> wrong = differences(file, declared);
  if (wrong.empty()) return;
  if (const std::string prefix = prefix_of(file, declared); !prefix.empty())
    throw data_error(file.path, "does not fit the model: its names begin with '", prefix,
                     "', which tools/convert_weights.py CHECKPOINT --strip ", prefix,
                     " takes off those of a checkpoint");
  const std::size_t all = wrong.size();
  if (all > kShownDifferences) wrong.resize(kShownDifferences);
  throw data_error(file.path, "does not fit the model: ", join(wrong, ", "),
                   all > kShownDifferences
                       ? concat(" and ", counted(all - kShownDifferences, "more difference"))
                       : std::string());
}

void load_weights(const WeightsFile& file,
                  const std::vector<std::pair<std::string, at::Tensor>>& state) {
  const TensorFile content = read_safetensors(file.path);
  const std::map<std::string, at::Tensor> given(content.tensors.begin(), content.tensors.end());
  const NameTranslation translated = translation(file);
  if (file.copies) check_copies(file, given, translated);
  for (const auto& [name, tensor] : state) {
    const ForeignTensor source = source_of(name, file, translated);
    if (source.names.empty() || is_fresh(name, file)) continue;
    const at::Tensor& values = first_of(source, given)->second;
    tensor.copy_(source.transposed ? values.t() : values);
  }
}

}  // namespace pipewright
