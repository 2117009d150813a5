// SPDX-License-Identifier: Apache-2.0
/// Skips of tests in C++. ../skips.py explains how skips are counted and where they are failures.
#pragma once

#include <gtest/gtest.h>

/// Skips a test because the machine lacks a thing, one of THINGS in ../skips.py. A reason may
/// follow with <<. skips.cpp, which is part of every test executable, turns the skip into a failure
/// if $PIPEWRIGHT_MAY_LACK is set and does not list the thing.
#define PIPEWRIGHT_LACKS(thing) GTEST_SKIP() << "lacks " thing ": "
