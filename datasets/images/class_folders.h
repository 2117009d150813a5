// SPDX-License-Identifier: Apache-2.0
/// Images in one folder per class, read as torchvision's ImageFolder does.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/images/encoded_images.h"

namespace pipewright {

/// Whether the name ends in .jpg, .jpeg or .png, in lower or upper case, and is not hidden.
bool is_image_name(std::string_view name);

/// Returns the names of the folders in `folder` that are neither hidden nor __MACOSX, sorted
/// bytewise. Throws Error{Data} if `folder` cannot be listed.
std::vector<std::string> folder_names(const std::filesystem::path& folder);

/// Lists the images in and below folder/classes[c] as images of class c, sorted by class, folder
/// and name. Throws Error{Data} with the class that has no folder or no image.
EncodedImages images_by_class(const std::filesystem::path& folder,
                              std::span<const std::string> classes);

/// Remarks on the files that are no images by their endings.
std::vector<std::string> left_out_remarks(const EncodedImages& images);

}  // namespace pipewright
