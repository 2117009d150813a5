#include "tools/part_kinds.h"

#include "core/schedule/schedule.h"
#include "core/stage/dataset.h"
#include "core/stage/loss.h"
#include "core/stage/model.h"
#include "core/stage/optimizer.h"

namespace pipewright {
namespace {

template <class Part>
PartKind kind_of(const std::string& name, const std::string& plural) {
  return {name, plural, [] { return Registry<Part>::instance().names(); },
          [](const std::string& part) { return Registry<Part>::instance().find(part)->summary; }};
}

/// No codec is registered yet: edges carry tensors as they are.
PartKind codecs() {
  return {"codec", "codecs", [] { return std::vector<std::string>{"none"}; },
          [](const std::string&) { return std::string("Tensors cross edges as they are."); }};
}

}  // namespace

const std::vector<PartKind>& part_kinds() {
  static const std::vector<PartKind> kinds{
      kind_of<Scheme>("scheme", "schemes"),          kind_of<Model>("model", "models"),
      kind_of<Dataset>("dataset", "datasets"),       codecs(),
      kind_of<Optimizer>("optimizer", "optimizers"), kind_of<Loss>("loss", "losses")};
  return kinds;
}

}  // namespace pipewright
