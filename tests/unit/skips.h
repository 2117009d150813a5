/// Skips of tests in C++; ../skips.py says how skips are counted and where they fail.
#pragma once

#include <gtest/gtest.h>

/// Skips a test for want of a thing, one of THINGS in ../skips.py. What follows with << says more.
/// skips.cpp, which every executable with tests is built with, makes it a failure where
/// $PIPEWRIGHT_MAY_LACK is set and does not list the thing.
#define PIPEWRIGHT_LACKS(thing) GTEST_SKIP() << "lacks " thing ": "
