//===- HostGraphCommands.cpp - What the host can be told to do ------------===//

#include "HostGraphCommands.h"

#include <cstring>

using namespace rondo;

//===----------------------------------------------------------------------===//
// One command
//===----------------------------------------------------------------------===//

HostCommand HostCommand::kernel(const KernelLaunch &launch) {
  HostCommand command;
  command.kind = GraphNodeKind::Kernel;
  command.function = reinterpret_cast<HostFunction>(const_cast<void *>(launch.function));
  command.grid = launch.grid;
  command.block = launch.block;
  command.sharedBytes = launch.sharedBytes;
  return command;
}

HostCommand HostCommand::fill(void *destination, FillValue value, size_t bytes) {
  HostCommand command;
  command.kind = GraphNodeKind::Fill;
  command.destination = destination;
  command.value = value;
  command.bytes = bytes;
  return command;
}

HostCommand HostCommand::copy(void *destination, const void *source, size_t bytes) {
  HostCommand command;
  command.kind = GraphNodeKind::Copy;
  command.destination = destination;
  command.source = source;
  command.bytes = bytes;
  return command;
}

static void fillMemory(void *destination, FillValue value, size_t bytes) {
  if (value.elementBytes() == 1) {
    std::memset(destination, int(value.element()), bytes);
    return;
  }
  uint32_t element = value.element();
  for (size_t i = 0; i < bytes; i += value.elementBytes())
    std::memcpy(static_cast<std::byte *>(destination) + i, &element, value.elementBytes());
}

void HostCommand::run(const std::byte *parameters) const {
  switch (kind) {
  case GraphNodeKind::Kernel:
    function(parameters);
    return;
  case GraphNodeKind::Fill:
    if (bytes)
      fillMemory(destination, value, bytes);
    return;
  case GraphNodeKind::Copy:
    if (bytes)
      std::memcpy(destination, source, bytes);
    return;
  default:
    assert(kind == GraphNodeKind::Empty && "no command of the host");
  }
}

//===----------------------------------------------------------------------===//
// Gathers
//===----------------------------------------------------------------------===//

HostGather::HostGather(llvm::ArrayRef<CopyPiece> pieces) : numPieces_(pieces.size()) {
  llvm::copy(pieces, pieces_.begin());
}

KernelLaunch HostGather::launch() const {
  KernelLaunch launch;
  launch.function = reinterpret_cast<const void *>(&run);
  launch.parameters = {reinterpret_cast<const std::byte *>(this),
                       offsetof(HostGather, pieces_) + numPieces_ * sizeof(CopyPiece)};
  return launch;
}

llvm::ArrayRef<CopyPiece> HostGather::pieces(const std::byte *parameters) {
  size_t numPieces = 0;
  std::memcpy(&numPieces, parameters, sizeof(numPieces));
  return {reinterpret_cast<const CopyPiece *>(parameters + offsetof(HostGather, pieces_)),
          numPieces};
}

llvm::SmallVector<size_t, DeviceAPI::maxCopyPieces> HostGather::sizes(const std::byte *parameters) {
  llvm::SmallVector<size_t, DeviceAPI::maxCopyPieces> sizes;
  for (const CopyPiece &piece : pieces(parameters))
    sizes.push_back(piece.bytes);
  return sizes;
}

void HostGather::run(const std::byte *parameters) {
  for (const CopyPiece &piece : pieces(parameters))
    if (piece.bytes)
      std::memcpy(piece.destination, piece.source, piece.bytes);
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

llvm::StringRef rondo::problemOfKernel(const KernelLaunch &launch) {
  if (!launch.function)
    return "expected a kernel, given a null function";
  if (llvm::is_contained(launch.grid, 0u) || llvm::is_contained(launch.block, 0u))
    return "expected sizes of grid and block above 0, given 0";
  return "";
}

llvm::StringRef rondo::problemOfCopy(const void *destination, const void *source, size_t bytes) {
  return (destination && source) || !bytes ? "" : "expected memory to copy, given null";
}

//===----------------------------------------------------------------------===//
// Lists
//===----------------------------------------------------------------------===//

static size_t numChunks(size_t bytes) {
  return (bytes + sizeof(ParameterChunk) - 1) / sizeof(ParameterChunk);
}

void rondo::copyParameters(std::vector<ParameterChunk> &chunks,
                           llvm::ArrayRef<std::byte> parameters) {
  chunks.resize(numChunks(parameters.size()));
  if (!parameters.empty())
    std::memcpy(chunks.data(), parameters.data(), parameters.size());
}

llvm::ArrayRef<std::byte> HostCommandList::parameters(size_t index) const {
  const Entry &entry = entries_[index];
  return {reinterpret_cast<const std::byte *>(chunks_.data() + entry.firstChunk),
          entry.parameterBytes};
}

std::byte *HostCommandList::block(const Entry &entry) {
  return reinterpret_cast<std::byte *>(chunks_.data() + entry.firstChunk);
}

void HostCommandList::clear() {
  entries_.clear();
  chunks_.clear();
}

void HostCommandList::add(const HostCommand &command, llvm::ArrayRef<std::byte> parameters) {
  entries_.push_back({command, chunks_.size(), parameters.size(), 0, command.value.elementBytes()});
  chunks_.resize(chunks_.size() + numChunks(parameters.size()));
  replace(entries_.size() - 1, command, parameters);
}

void HostCommandList::replace(size_t index, const HostCommand &command,
                              llvm::ArrayRef<std::byte> parameters) {
  Entry &entry = entries_[index];
  assert(parameters.size() <= entry.room && "no room for the parameters");
  entry.command = command;
  entry.parameterBytes = parameters.size();
  if (!parameters.empty())
    std::memcpy(block(entry), parameters.data(), parameters.size());
}

void HostCommandList::run(size_t index) const {
  entries_[index].command.run(parameters(index).data());
}
