//===- ScheduleTesting.h - Schedules of traces of text ----------*- C++ -*-===//

#pragma once

#include "ProgramTesting.h"
#include "Schedule.h"

namespace rondo {

/// Lowers pairs that are given as text and run through a pipeline.
class ScheduleFixture : public ProgramFixture {
protected:
  /// A schedule of nothing after an error, which is one of the test.
  Schedule lowered(const TracePair &pair, Side side = Side::Forward,
                   const Schedule *forward = nullptr) const {
    const Executor *executor = &host;
    llvm::Expected<Schedule> schedule = lower(pair, side, {device, executor, forward});
    if (schedule)
      return std::move(*schedule);
    ADD_FAILURE() << llvm::toString(schedule.takeError());
    return {};
  }
  TracePair piped(llvm::StringRef text, llvm::StringRef pipeline = regionPipeline) const {
    llvm::Expected<TracePair> pair = pipelineOf(pipeline.str(), host)(parse(text), {});
    if (pair)
      return std::move(*pair);
    ADD_FAILURE() << llvm::toString(pair.takeError());
    return TracePair(Trace(registry, "failed"));
  }
  Schedule lowered(llvm::StringRef text, llvm::StringRef pipeline = regionPipeline) const {
    return lowered(piped(text, pipeline));
  }
};

} // namespace rondo
