//===- Call.h - One call of a program, inside -------------------*- C++ -*-===//
//
// A call leases what it needs, binds its arguments, runs its steps and gives its results. Call.cpp
// has all that a replay goes through; CallRegions.cpp what is done where the graph of a region is
// missing or cannot be launched as it is; CallChecks.cpp what is refused.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "ProgramImpl.h"

namespace rondo {

/// One call of a side of a variant. Used once, by one thread. Borrows all that it is given.
class Call {
public:
  Call(ProgramImpl &program, Variant &variant, Side side, Stream &stream,
       llvm::ArrayRef<Value> inputs, llvm::ArrayRef<Tensor> outputs, bool isCaptured)
      : program_(program), variant_(variant), side_(side), plan_(variant.side(side)),
        schedule_(plan_.schedule), stream_(stream), inputs_(inputs), outputs_(outputs),
        isCaptured_(isCaptured) {}
  Call(const Call &) = delete;
  Call &operator=(const Call &) = delete;
  ~Call() {
    if (lane_)
      program_.returnLane(*lane_);
  }

  /// A forward makes `slab`, unless nothing is saved; a backward is given it. Appends to `results`.
  llvm::Error run(BlockRef &slab, llvm::SmallVectorImpl<Value> &results);

private:
  BoundArguments &bound() { return frame_->bound; }
  const BoundArguments &bound() const { return frame_->bound; }

  //===--- Call.cpp -------------------------------------------------------===//
  // `inline` is what a replay goes through and costs less than its call; no other file uses it.

  /// Under the lock, once a call. Nothing is allocated for arguments that do not fit.
  llvm::Error lease(BlockRef &slab);
  /// Binds the arguments; `saved` is what a backward is given.
  llvm::Error bind(const Block *saved);
  /// False if the caller gave memory for all that would lie in a set of results.
  inline bool needsResults() const;
  /// What the caller's graph uses of the program.
  void keepForCapture() const;
  /// Nothing to wait for while the caller captures: the caller orders what is captured.
  llvm::Error acquire();
  llvm::Error release();
  llvm::SmallVector<Block *, 4> blocks() const;

  void setBases();
  inline void setSavedAddresses();
  /// Copies arguments below the minimum alignment to where kernels can use them.
  llvm::Error alignArguments();
  inline llvm::Error copyBackAligned();
  inline const DeviceRef &deviceOf(const Place &place) const;

  llvm::Error runSteps();
  llvm::Error runStep(uint32_t index);
  /// Overwrites what nothing reads after step `index`.
  inline llvm::Error poison(uint32_t index, Stream &stream);
  /// `error`, with the text of the step before it.
  static llvm::Error inStep(const Step &step, llvm::Error error);

  llvm::Error runRegion(const ScheduledRegion &region);
  GraphKey keyOf(const ScheduledRegion &region) const;
  static GraphEntryRef findEntry(const ScheduledRegion &region, const GraphKey &key,
                                 Frame::Recent &recent);
  /// Lets the graph of `entry` hold buffers and scalars as they are in this call. False if that
  /// failed, as a capture may.
  llvm::Expected<bool> follow(const ScheduledRegion &region, const GraphKey &key, GraphEntry &entry,
                              Frame::Recent &recent);
  llvm::Error runEagerly(const ScheduledRegion &region);

  void fillSaved();
  void giveResults(llvm::SmallVectorImpl<Value> &results) const;

  //===--- CallRegions.cpp ------------------------------------------------===//
  /// Builds the graph, and runs the region eagerly as this call.
  llvm::Error runFirst(const ScheduledRegion &region);
  /// Builds and caches the graph of `region`. False if that failed. Unless that is an error of the
  /// call, or another thread or a want of memory was to blame, it is remarked upon and the region
  /// changed for later calls.
  bool build(const ScheduledRegion &region, GraphEntryRef &entry);
  /// Notes what graphs of `region` cannot follow: they are found by it from now on.
  void noteFacts(const ScheduledRegion &region, const GraphEntry &entry) const;
  GraphRequest requestFor(const ScheduledRegion &region) const;
  /// A later call begins as the first one did.
  void forgetGraph(const ScheduledRegion &region) const;

  /// Brings the graph to where `changed` of its sources are: by a patch, else by another capture.
  /// False if that failed.
  llvm::Expected<bool> update(const ScheduledRegion &region, const GraphKey &key, GraphEntry &entry,
                              llvm::ArrayRef<unsigned> changed);
  /// False if one of the sources cannot be patched.
  llvm::Expected<bool> patch(const ScheduledRegion &region, GraphEntry &entry,
                             llvm::ArrayRef<unsigned> changed);
  /// Finds out what words of the graph are what, unless that is known. False if that failed, as a
  /// capture may.
  llvm::Expected<bool> explain(const ScheduledRegion &region, GraphEntry &entry);
  /// The graph cannot follow by changed pointers: it is captured where everything is now.
  bool recapture(const ScheduledRegion &region, const GraphKey &key, GraphEntry &entry);

  const RegionHooks &hooks() const { return program_.options_.hooks; }
  template <typename Hook, typename... Args>
  llvm::Error callHook(const Hook &hook, const ScheduledRegion &region, Args... args) const;
  /// Does `capture`, which returns whether it succeeded, between the hooks. Errors: of a hook.
  llvm::Expected<bool> captured(const ScheduledRegion &region,
                                llvm::function_ref<bool()> capture) const;
  /// Of a capture that failed.
  llvm::Error captureError() const;

  //===--- CallChecks.cpp -------------------------------------------------===//
  /// A capture holds neither what another device does nor what the host waits for.
  llvm::Error checkCapturable() const;
  /// Are static arguments where they were at the first call?
  llvm::Error checkStatics();
  /// What is saved is an argument of the backward, too: none of its inputs may share bytes with it
  /// if one of the two is written.
  llvm::Error checkSavedOverlaps(const Block &slab) const;
  /// Calls `visit` with what a backward is given by its forward.
  void forEachSaved(const Block *slab,
                    llvm::function_ref<void(const std::string &, ByteRange)> visit) const;
  /// Where `storage` is if it holds bytes that are saved in `slab`, else null.
  static const std::byte *savedAddress(const Block &slab, const PlannedStorage &storage);
  std::string text(unsigned input) const;

  ProgramImpl &program_;
  Variant &variant_;
  const Side side_;
  SidePlan &plan_;
  const Schedule &schedule_;
  Stream &stream_;
  llvm::ArrayRef<Value> inputs_;
  llvm::ArrayRef<Tensor> outputs_; ///< empty, or by result

  const bool isCaptured_;    ///< the stream, by the caller
  bool isTransient_ = false; ///< the variant
  Lane *lane_ = nullptr;
  Frame *frame_ = nullptr; ///< of the lane
  BlockRef results_;       ///< null if the caller gave memory for all of them
  llvm::SmallVector<PlacedResult, 1> placed_;
  Block *slab_ = nullptr; ///< the variant's, or the saved state's, which the caller holds
  Bases bases_;
  llvm::SmallVector<StorageRef, 1> aligned_;
  Generators::Use generatorUse_;
  std::string failure_; ///< of the capture that failed last
};

} // namespace rondo
