/// Images sorted into one folder per class, as torchvision's ImageFolder reads them.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/images/encoded_images.h"

namespace pipewright {

/// True of names that end in .jpg, .jpeg or .png, in small letters or large ones.
bool is_image_name(std::string_view name);

/// The names of the folders in `folder`, sorted by their bytes, without hidden ones. Throws
/// Error{Data} if it cannot be listed.
std::vector<std::string> folder_names(const std::filesystem::path& folder);

/// The images in and below folder/classes[c] are of class c; sorted by class, folder and name.
/// Throws Error{Data} naming the class without a folder or without an image.
EncodedImages images_by_class(const std::filesystem::path& folder,
                              std::span<const std::string> classes);

}  // namespace pipewright
