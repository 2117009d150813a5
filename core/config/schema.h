// SPDX-License-Identifier: Apache-2.0
/// Descriptions of options for editors (JSON Schema) and for people (help pages).
#pragma once

#include <string>
#include <vector>

#include "core/config/options.h"

namespace pipewright {

/// The dialect to name in "$schema", at the root of the whole schema only.
inline constexpr const char* kSchemaDialect = "https://json-schema.org/draft/2020-12/schema";

/// A JSON Schema (draft 2020-12) of a mapping with these options and no others. It has no
/// "$schema", so that it can be part of another schema. to_json() writes it.
Value json_schema(const std::vector<OptionInfo>& options);

/// A help page for the terminal, 100 columns wide: one paragraph per option with its name, type,
/// range or choices, default and help; options of sections by their dotted names.
std::string describe_options(const std::vector<OptionInfo>& options);

}  // namespace pipewright
