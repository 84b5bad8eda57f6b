//===- RecordedTracesTest.cpp - PyTorch's numbers -------------------------===//
//
// Training steps, a decoding step and an optimiser step that were recorded in PyTorch, run on the
// host device, against PyTorch's own results.
//
//===----------------------------------------------------------------------===//

#include "RecordedTesting.h"

using namespace rondo;

namespace {

class RecordedTracesTest : public RecordedFixture {};

// All that a step gives equals PyTorch's.
TEST_P(RecordedTracesTest, EqualsPyTorch) {
  HostExecutor host;
  expectRecorded({createHostDevice(), {&host}});
}

INSTANTIATE_TEST_SUITE_P(, RecordedTracesTest, testing::ValuesIn(recordedBars()),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace
