//===- DeviceAPI.cpp - Streams, events, memory, graphs --------------------===//

#include "rondo/executors/Executor.h"

using namespace rondo;

CommandSink::~CommandSink() = default;
Event::~Event() = default;
Graph::~Graph() = default;
GraphExec::~GraphExec() = default;
StreamTail::~StreamTail() = default;
DeviceAPI::~DeviceAPI() = default;
Kernel::~Kernel() = default;

llvm::StringRef rondo::graphNodeKindName(GraphNodeKind kind) {
  switch (kind) {
  case GraphNodeKind::Kernel:
    return "kernel";
  case GraphNodeKind::Fill:
    return "fill";
  case GraphNodeKind::Copy:
    return "copy";
  case GraphNodeKind::Empty:
    return "empty";
  case GraphNodeKind::Conditional:
    return "conditional";
  case GraphNodeKind::Other:
    return "other";
  }
  return "unknown";
}
