//===- DeviceAPI.h - Streams, events, memory, graphs ------------*- C++ -*-===//
//
// What Rondo asks of a device. There are two implementations, `host` (rondo/host/HostDevice.h) and
// `cuda`, and one suite of tests that both pass. The terms and rules are CUDA's:
//
//   stream   work that runs in the order of submission
//   event    a point in a stream that other streams and the host can wait for
//   graph    nodes and dependencies; made node by node or by capturing what goes to a stream
//   exec     an instantiated graph: launched again and again, its nodes' parameters can be changed
//
// All objects are made by a `DeviceAPI`, keep it alive, and may outlive the caller's reference to
// it. Destructors wait for the work that still uses the object; they do not throw and do not
// report. Every function may be called from several threads, but one stream, graph or exec only by
// one thread at a time.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/executors/DeviceError.h"

#include "rondo/ir/Device.h"
#include "rondo/ir/Ids.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <array>
#include <cassert>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace rondo {

class DeviceAPI;
class Stream;

/// One kernel and all it needs. Borrowed for the call; parameters are copied.
struct KernelLaunch {
  /// What runs. `host`: a `void (*)(const std::byte *parameters)`; `cuda`: a CUfunction.
  const void *function = nullptr;
  std::array<uint32_t, 3> grid = {1, 1, 1}, block = {1, 1, 1};
  uint32_t sharedBytes = 0; ///< dynamic shared memory
  /// The parameters as the kernel's ABI packs them, each at its natural alignment; the block itself
  /// is aligned to 16 bytes when the kernel sees it.
  llvm::ArrayRef<std::byte> parameters;
};

/// What a fill writes: a byte, or an element of 2 or 4 bytes, again and again. Equal if the bytes
/// that are written are: an element that repeats a shorter one is the shorter one.
class FillValue {
public:
  constexpr FillValue(uint8_t byte = 0) : element_(byte) {}
  /// The lowest `elementBytes` bytes of `element`, the lowest first; 1, 2 or 4.
  constexpr FillValue(uint32_t element, unsigned elementBytes)
      : element_(element), elementBytes_(elementBytes) {
    assert((elementBytes == 1 || elementBytes == 2 || elementBytes == 4) &&
           "no size of an element");
    for (unsigned half = elementBytes / 2; half && repeats(half); half /= 2)
      elementBytes_ = half;
    element_ &= uint32_t(~uint64_t(0) >> (64 - 8 * elementBytes_));
  }

  constexpr uint32_t element() const { return element_; }
  constexpr unsigned elementBytes() const { return elementBytes_; }
  /// The same bytes as an element of 4 bytes.
  constexpr uint32_t repeated() const {
    return elementBytes_ == 1   ? element_ * 0x01010101
           : elementBytes_ == 2 ? element_ * 0x00010001
                                : element_;
  }
  /// Can elements of `elementBytes` bytes fill exactly these bytes?
  static bool fits(const void *destination, size_t bytes, unsigned elementBytes) {
    return reinterpret_cast<uintptr_t>(destination) % elementBytes == 0 &&
           bytes % elementBytes == 0;
  }

  friend constexpr bool operator==(FillValue a, FillValue b) {
    return a.element_ == b.element_ && a.elementBytes_ == b.elementBytes_;
  }
  friend constexpr bool operator!=(FillValue a, FillValue b) { return !(a == b); }

private:
  /// Are the lowest `half` bytes those above them, too?
  constexpr bool repeats(unsigned half) const {
    uint32_t mask = (uint32_t(1) << (8 * half)) - 1;
    return (element_ & mask) == ((element_ >> (8 * half)) & mask);
  }

  uint32_t element_;
  unsigned elementBytes_ = 1;
};

/// One piece of a gather.
struct CopyPiece {
  void *destination = nullptr;
  const void *source = nullptr;
  size_t bytes = 0;
};

/// Where a kernel puts its work: a stream, which runs it, or a graph under construction, which
/// keeps it. A kernel that works through a sink does the same in both, which is why eager execution
/// and replay agree to the bit.
class CommandSink {
public:
  virtual ~CommandSink();

  virtual DeviceAPI &device() = 0;
  /// True if what is submitted is only looked at and never runs: its addresses are anybody's, and
  /// memory may overlap that will not when it runs.
  virtual bool isRehearsal() const { return false; }
  virtual llvm::Error launch(const KernelLaunch &launch) = 0;
  /// Sets `bytes` bytes to `value`.
  virtual llvm::Error fill(void *destination, uint8_t value, size_t bytes) = 0;
  /// Copies bytes that do not overlap; either side may be host memory.
  virtual llvm::Error copy(void *destination, const void *source, size_t bytes) = 0;
  /// Work that a library submits to a stream by itself: `submit` is called at once, with a stream
  /// that runs what it gets or is being captured.
  virtual llvm::Error call(llvm::function_ref<llvm::Error(Stream &)> submit) = 0;
  /// Waits until all that was submitted is done. Errors: NotCapturable where nothing runs.
  virtual llvm::Error synchronize() = 0;
};

/// A point in a stream's work. Recorded any number of times; waiting before the first record
/// returns at once.
class Event {
public:
  virtual ~Event();
  /// True if the work before the last record is done.
  virtual llvm::Expected<bool> query() = 0;
  virtual llvm::Error synchronize() = 0;
};

/// Which calls other than on the stream itself a capture forbids, and to whom.
enum class CaptureMode : uint8_t {
  Global,      ///< potentially unsafe calls are forbidden to every thread
  ThreadLocal, ///< to the thread that began the capture
  Relaxed,     ///< to nobody
};
enum class CaptureStatus : uint8_t { None, Active, Invalidated };

/// A node of a graph. Numbered from 0 in the order in which they were added.
struct GraphNodeTag {
  static constexpr char letter = 'n';
};
using GraphNodeId = Id<GraphNodeTag>;

enum class GraphNodeKind : uint8_t { Kernel, Fill, Copy, Empty, Conditional, Other };
llvm::StringRef graphNodeKindName(GraphNodeKind kind);

/// What a node does; which fields count depends on `kind`. The parameters of a kernel that were
/// read from a graph are borrowed: valid until the graph changes or is read again.
struct GraphNodeParameters {
  GraphNodeKind kind = GraphNodeKind::Empty;
  KernelLaunch kernel;          ///< of a kernel
  void *destination = nullptr;  ///< of a fill or copy
  const void *source = nullptr; ///< of a copy
  size_t bytes = 0;             ///< of a fill or copy; 0: the addresses mean nothing
  FillValue value;              ///< of a fill
};

class GraphExec;

/// A graph that is being made: the template of execs. Dependencies name nodes of the same graph.
class Graph {
public:
  virtual ~Graph();

  virtual DeviceAPI &device() = 0;
  virtual llvm::Expected<GraphNodeId> addKernel(const KernelLaunch &launch,
                                                llvm::ArrayRef<GraphNodeId> dependencies) = 0;
  /// Whole elements of the value, aligned to their size.
  virtual llvm::Expected<GraphNodeId> addFill(void *destination, FillValue value, size_t bytes,
                                              llvm::ArrayRef<GraphNodeId> dependencies) = 0;
  virtual llvm::Expected<GraphNodeId> addCopy(void *destination, const void *source, size_t bytes,
                                              llvm::ArrayRef<GraphNodeId> dependencies) = 0;
  virtual llvm::Expected<GraphNodeId> addEmpty(llvm::ArrayRef<GraphNodeId> dependencies) = 0;
  /// A kernel that makes several small copies, 1 to maxCopyPieces, within the memory of the device.
  /// What one piece writes no piece reads and no other writes. Any alignment; 16 bytes are fastest.
  virtual llvm::Expected<GraphNodeId> addGather(llvm::ArrayRef<CopyPiece> pieces,
                                                llvm::ArrayRef<GraphNodeId> dependencies) = 0;

  virtual size_t numNodes() const = 0;
  virtual GraphNodeKind kind(GraphNodeId node) const = 0;
  /// Direct dependencies, sorted, without duplicates.
  virtual llvm::SmallVector<GraphNodeId, 4> dependencies(GraphNodeId node) const = 0;
  /// Of any node, also of one that a library's call made in a capture: to set an exec's node to
  /// what was read changes nothing. Errors: InvalidArgument for no node; for one that does anything
  /// else (Conditional, Other), or a fill or copy in more than one dimension or of other than plain
  /// memory.
  virtual llvm::Expected<GraphNodeParameters> parameters(GraphNodeId node) = 0;

  /// The exec keeps what it needs; the graph may change or go.
  virtual llvm::Expected<std::unique_ptr<GraphExec>> instantiate() = 0;
};

/// An instantiated graph. Parameter changes affect later launches only, also while earlier ones
/// run.
class GraphExec {
public:
  virtual ~GraphExec();

  /// The cudaGraphExec_t; null on the host.
  virtual void *nativeHandle() const { return nullptr; }
  /// Launches on `stream` and returns without waiting. Launches of one exec do not overlap.
  virtual llvm::Error launch(Stream &stream) = 0;
  /// As `launch`, for who knows that the stream is not being captured: saves the question.
  virtual llvm::Error launchUncaptured(Stream &stream) { return launch(stream); }
  /// Errors: InvalidArgument if the node is of another kind, or the kernel another function or one
  /// with more bytes of parameters. What a launch does not say (clusters, cooperation) stays.
  virtual llvm::Error setKernel(GraphNodeId node, const KernelLaunch &launch) = 0;
  /// Errors: InvalidArgument, also if the value's elements are longer than those of the node.
  virtual llvm::Error setFill(GraphNodeId node, void *destination, FillValue value,
                              size_t bytes) = 0;
  virtual llvm::Error setCopy(GraphNodeId node, void *destination, const void *source,
                              size_t bytes) = 0;
  /// Errors: InvalidArgument, also if the node is no gather, or one of other sizes in this order.
  virtual llvm::Error setGather(GraphNodeId node, llvm::ArrayRef<CopyPiece> pieces) = 0;
  /// As the function above for the kind of `parameters`; nothing for an empty node. Errors:
  /// InvalidArgument, also for parameters of another kind.
  llvm::Error set(GraphNodeId node, const GraphNodeParameters &parameters);
  /// Makes this the exec of `graph`, which has the same nodes with the same kernels and
  /// dependencies and may have other parameters. Errors: InvalidArgument that names the node that
  /// differs; then the exec is as before.
  virtual llvm::Error update(const Graph &graph) = 0;
};

/// The end of a stream's work, wherever that is when it is asked for: the price of ordering two
/// streams is paid by the one that waits. May outlive the stream, which has no work then. Any
/// thread may use it, also while another one uses the stream.
class StreamTail {
public:
  virtual ~StreamTail();
  /// Lets `stream`, of the same device, wait for what was submitted so far; what is being captured
  /// was not submitted. Errors: as Stream::wait.
  virtual llvm::Error orderBefore(Stream &stream) = 0;
  /// Waits for it. Only where DeviceAPI::mayWait.
  virtual llvm::Error synchronize() = 0;
};

/// Work in order of submission. Functions of CommandSink return without waiting, except
/// `synchronize`.
class Stream : public CommandSink {
public:
  llvm::Error call(llvm::function_ref<llvm::Error(Stream &)> submit) final { return submit(*this); }

  /// Never used again for another stream of this process.
  virtual uint64_t id() const = 0;
  /// The CUstream; null on the host.
  virtual void *nativeHandle() const = 0;
  /// True if all that was submitted is done.
  virtual llvm::Expected<bool> query() = 0;
  virtual llvm::Error record(Event &event) = 0;
  /// What is submitted from here on waits for the event. While this stream is being captured, an
  /// event that was recorded in the same capture adds a dependency, and any other is an error
  /// (NotCapturable); an event of a capture, waited for by a stream that is not being captured,
  /// makes that stream part of the capture.
  virtual llvm::Error wait(Event &event) = 0;
  /// The same object for the life of the stream.
  virtual const std::shared_ptr<StreamTail> &tail() const = 0;

  // Capture: what is submitted becomes nodes of a graph and does not run. `synchronize` and `query`
  // of a stream in capture are errors (NotCapturable) that invalidate the capture. After an error
  // the capture must still be ended, which returns CaptureInvalidated and leaves the stream as it
  // was before.

  virtual CaptureStatus captureStatus() const = 0;
  /// Errors: InvalidArgument if the stream is being captured already.
  virtual llvm::Error beginCapture(CaptureMode mode) = 0;
  /// By the thread that began it unless the mode is Relaxed. Errors: CaptureInvalidated; also when
  /// a stream that joined the capture was not joined back.
  virtual llvm::Expected<std::unique_ptr<Graph>> endCapture() = 0;
  /// As beginCapture, but nodes are added to `graph`, the first of them after `dependencies`.
  virtual llvm::Error beginCaptureToGraph(Graph &graph, llvm::ArrayRef<GraphNodeId> dependencies,
                                          CaptureMode mode) = 0;
  /// Ends it and appends the nodes that the next thing on the stream would have waited for. After
  /// an error nodes that were added stay in the graph, which is good for nothing but to be
  /// destroyed.
  virtual llvm::Error endCaptureToGraph(llvm::SmallVectorImpl<GraphNodeId> &last) = 0;
  /// Lets the graph that this stream is being captured to keep `resource` alive, and with it every
  /// exec that is instantiated from it or updated to it, until its launches are done, and every
  /// graph that one of these is launched into. False, and nothing kept, if the stream is not being
  /// captured, or if somebody else began the capture, so that nobody here sees the graph.
  virtual bool keep(std::shared_ptr<void> resource) = 0;
};

struct MemoryUse {
  uint64_t bytes = 0;       ///< allocated now
  uint64_t peakBytes = 0;   ///< most since the device was made or resetPeak was called
  uint64_t allocations = 0; ///< how many calls of `allocate` succeeded, ever
};

/// One device. Thread-safe.
class DeviceAPI : public std::enable_shared_from_this<DeviceAPI> {
public:
  /// Alignment in bytes of what `allocate` returns, and of a Tensor's data that kernels may assume.
  static constexpr size_t allocationAlignment = 256, minAlignment = 16;
  /// Most pieces of one gather.
  static constexpr size_t maxCopyPieces = 64;

  virtual ~DeviceAPI();

  virtual Device device() const = 0;
  /// For people: `host`, `NVIDIA H200`.
  virtual std::string description() const = 0;

  /// Uninitialised. `bytes` may be 0: then the result is null. Errors: OutOfMemory; NotCapturable
  /// where a capture forbids it.
  virtual llvm::Expected<void *> allocate(size_t bytes) = 0;
  /// The bytes are used again only after the work submitted before is done; may wait for it.
  /// `bytes` as given to `allocate`.
  virtual void deallocate(void *data, size_t bytes) noexcept = 0;
  virtual MemoryUse memoryUse() const = 0;
  virtual void resetPeak() = 0;
  /// Gives memory that nobody uses back to the system; waits for the work in flight.
  virtual void trim() {}
  /// Can kernels of this device use the memory at `data` directly? Asked of memory that somebody
  /// else gives us.
  virtual bool canAccess(const void *data) const = 0;

  virtual llvm::Expected<std::unique_ptr<Stream>> createStream() = 0;
  virtual llvm::Expected<std::unique_ptr<Event>> createEvent() = 0;
  virtual llvm::Expected<std::unique_ptr<Graph>> createGraph() = 0;
  /// Waits for all streams. Errors: NotCapturable if one of them is being captured: those captures
  /// are invalid then.
  virtual llvm::Error synchronize() = 0;

  // A wait where a capture forbids it makes the capture invalid, and so may the destruction of what
  // a library made. What has to be destroyed whenever it comes, such as a program, does that later.

  /// May this thread wait for the device, as far as captures are concerned that were begun here?
  virtual bool mayWait() const = 0;
  /// If a capture forbids this thread to wait: takes `work`, calls it when that capture has ended,
  /// by the thread that ends it, and returns true. Of a capture that somebody else began and ends
  /// it is found out later: when memory is allocated or trimmed, or the stream is destroyed. `work`
  /// may be put off again.
  virtual bool putOff(std::function<void()> work) = 0;
};

using DeviceRef = std::shared_ptr<DeviceAPI>;

// For devices: what is wrong with arguments, or empty.

llvm::StringRef problemOfFill(const void *destination, FillValue value, size_t bytes);
std::string problemOfGather(llvm::ArrayRef<CopyPiece> pieces);
/// Of pieces for a gather with pieces of these sizes.
std::string problemOfGather(llvm::ArrayRef<CopyPiece> pieces, llvm::ArrayRef<size_t> sizes);

} // namespace rondo
