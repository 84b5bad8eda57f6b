//===- DimThreadsTest.cpp - Dimensions shared by threads ------------------===//

#include "rondo/ir/Dim.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

using namespace rondo;

namespace {

/// Copies of one symbolic dimension may be made, used and dropped by eight threads at once.
TEST(DimThreads, CopiesAreIndependent) {
  Dim shared = Dim::symbol("B") * Dim::symbol("S") + 1;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([copy = shared, t, &wrong] {
      for (int i = 0; i < 2000; ++i) {
        Dim mine = copy;
        wrong += (mine * t - copy * t) != Dim(0) || mine.str() != "B*S+1";
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(shared.str(), "B*S+1");
}

} // namespace
