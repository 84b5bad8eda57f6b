//===- RunThreads.h - Threads that start together ---------------*- C++ -*-===//

#pragma once

#include <atomic>
#include <thread>
#include <vector>

namespace rondo {

/// Runs `body(t)` on `numThreads` threads that start together, t being 0 to numThreads - 1, and
/// waits for them.
template <typename Body> void runThreads(int numThreads, Body body) {
  std::atomic<int> waiting = numThreads;
  std::vector<std::thread> threads;
  for (int t = 0; t < numThreads; ++t)
    threads.emplace_back([&, t] {
      --waiting;
      while (waiting > 0)
        std::this_thread::yield();
      body(t);
    });
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace rondo
