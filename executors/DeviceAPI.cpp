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

bool Kernel::canReuse(unsigned, unsigned) const {
  return false;
}

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

llvm::Error GraphExec::set(GraphNodeId node, const GraphNodeParameters &parameters) {
  switch (parameters.kind) {
  case GraphNodeKind::Kernel:
    return setKernel(node, parameters.kernel);
  case GraphNodeKind::Fill:
    return setFill(node, parameters.destination, parameters.value, parameters.bytes);
  case GraphNodeKind::Copy:
    return setCopy(node, parameters.destination, parameters.source, parameters.bytes);
  case GraphNodeKind::Empty:
    return llvm::Error::success();
  case GraphNodeKind::Conditional:
  case GraphNodeKind::Other:
    break;
  }
  return makeDeviceError(DeviceErrorKind::InvalidArgument,
                         "expected parameters of a kernel, fill, copy or empty node to set, given "
                         "those of kind " +
                             graphNodeKindName(parameters.kind));
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

llvm::StringRef rondo::problemOfFill(const void *destination, FillValue value, size_t bytes) {
  if (!bytes)
    return "";
  if (!destination)
    return "expected memory to fill, given null";
  if (!FillValue::fits(destination, bytes, value.elementBytes()))
    return "expected memory that is aligned to, and a multiple of, the elements to fill it with";
  return "";
}

std::string rondo::problemOfGather(llvm::ArrayRef<CopyPiece> pieces) {
  if (pieces.empty() || pieces.size() > DeviceAPI::maxCopyPieces)
    return "expected 1 to " + std::to_string(DeviceAPI::maxCopyPieces) +
           " pieces to gather, given " + std::to_string(pieces.size());
  for (const CopyPiece &piece : pieces)
    if (piece.bytes && !(piece.destination && piece.source))
      return "expected memory to gather, given null in piece " +
             std::to_string(&piece - pieces.data());
  return "";
}

std::string rondo::problemOfGather(llvm::ArrayRef<CopyPiece> pieces, llvm::ArrayRef<size_t> sizes) {
  if (pieces.size() != sizes.size())
    return "expected " + std::to_string(sizes.size()) + " pieces to gather, given " +
           std::to_string(pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i)
    if (pieces[i].bytes != sizes[i])
      return "expected " + std::to_string(sizes[i]) + " bytes in piece " + std::to_string(i) +
             " of a gather, given " + std::to_string(pieces[i].bytes);
  return problemOfGather(pieces);
}
