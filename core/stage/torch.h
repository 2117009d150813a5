/// What our .cpp files use of LibTorch, precompiled. Headers include ATen/core/Tensor.h at most.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <string>
#include <vector>
