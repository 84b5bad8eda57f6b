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
  return command;
}

HostCommand HostCommand::fill(void *destination, uint8_t value, size_t bytes) {
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

void HostCommand::run(const std::byte *parameters) const {
  switch (kind) {
  case GraphNodeKind::Kernel:
    function(parameters);
    return;
  case GraphNodeKind::Fill:
    if (bytes)
      std::memset(destination, value, bytes);
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
// Arguments
//===----------------------------------------------------------------------===//

llvm::StringRef rondo::problemOfKernel(const KernelLaunch &launch) {
  if (!launch.function)
    return "expected a kernel, given a null function";
  if (llvm::is_contained(launch.grid, 0u) || llvm::is_contained(launch.block, 0u))
    return "expected sizes of grid and block above 0, given 0";
  return "";
}

llvm::StringRef rondo::problemOfFill(const void *destination, size_t bytes) {
  return destination || !bytes ? "" : "expected memory to fill, given null";
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
  entries_.push_back({command, chunks_.size(), parameters.size(), 0});
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
