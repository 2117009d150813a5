// SPDX-License-Identifier: Apache-2.0
// `pipewright claims`: decides the claims of several tables together.
#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/config/json.h"
#include "core/system/terminal.h"
#include "core/tables/families.h"
#include "tools/command.h"

namespace pipewright {
namespace {

int run_claims(const std::vector<std::string>& arguments) {
  CommandLine line(
      kClaims,
      "Decides the claims of several experiments together. Each TABLE is a file with what `table "
      "FILE --format json` printed. `table` corrects the p values of a file's comparisons for all "
      "of that file; this corrects them, by Holm's method at 5 %, for all comparisons of all "
      "tables. One that has not been made counts with a p of 1. A claim with `less` is held only "
      "if "
      "the exact sign-flip p is at most 5 %, too. Prints JSON: the tests of each claim, with "
      "`p_holm` and `verdict` of the family.");
  line.positional("TABLE", "a file of `table --format json`", 1, 1000);
  line.option("only", "IDS",
              "only claims whose sentence begins with one of these words and a colon, such as "
              "P1,P2");
  if (!line.parse(arguments)) return 0;
  std::vector<Value> tables;
  for (const std::string& file : line.texts("TABLE")) tables.push_back(load_json(file));
  std::vector<std::string> ids;
  if (line.given("only")) ids = split(line.text("only"), ',');
  print("%s\n", to_json(decided_together(tables, ids)).c_str());
  return 0;
}

}  // namespace

const Command kClaims{"claims", "claims TABLE… [--only IDS]",
                      "decides the claims of several tables together", run_claims};

}  // namespace pipewright
