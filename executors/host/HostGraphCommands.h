//===- HostGraphCommands.h - What the host can be told to do ----*- C++ -*-===//
//
// A command is a kernel, a fill, a copy or nothing. A list of commands keeps the parameter blocks
// of its kernels, aligned as kernels expect them. Graphs, execs and the queues of asynchronous
// streams are lists of commands.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/host/HostDevice.h"

#include <vector>

namespace rondo {

/// The unit of parameter blocks.
struct alignas(16) ParameterChunk {
  std::byte bytes[16];
};

/// One command, but for the parameters of a kernel.
struct HostCommand {
  GraphNodeKind kind = GraphNodeKind::Empty; ///< Kernel, Fill, Copy or Empty
  FillValue value;                           ///< of a fill
  HostFunction function = nullptr;           ///< of a kernel
  void *destination = nullptr;               ///< of a fill or copy
  const void *source = nullptr;              ///< of a copy
  size_t bytes = 0;                          ///< of a fill or copy
  /// Of a kernel, whose function does not see them; only to be read from a graph.
  std::array<uint32_t, 3> grid = {1, 1, 1}, block = {1, 1, 1};
  uint32_t sharedBytes = 0;

  static HostCommand kernel(const KernelLaunch &launch);
  static HostCommand fill(void *destination, FillValue value, size_t bytes);
  static HostCommand copy(void *destination, const void *source, size_t bytes);

  /// `parameters`, for a kernel, is aligned to 16 bytes.
  void run(const std::byte *parameters) const;
};

/// The parameters of a gather, which is a kernel of the host: the number of pieces and the pieces.
class HostGather {
public:
  /// Of valid pieces.
  explicit HostGather(llvm::ArrayRef<CopyPiece> pieces);
  /// Refers to this.
  KernelLaunch launch() const;

  static bool isGather(const HostCommand &command) { return command.function == &run; }
  /// Of the pieces of a gather with these parameters.
  static llvm::SmallVector<size_t, DeviceAPI::maxCopyPieces> sizes(const std::byte *parameters);

private:
  static llvm::ArrayRef<CopyPiece> pieces(const std::byte *parameters);
  static void run(const std::byte *parameters);

  size_t numPieces_;
  std::array<CopyPiece, DeviceAPI::maxCopyPieces> pieces_;
};

/// What is wrong with the arguments, or empty.
llvm::StringRef problemOfKernel(const KernelLaunch &launch);
llvm::StringRef problemOfCopy(const void *destination, const void *source, size_t bytes);

/// Makes `chunks` a copy of `parameters`. Does not allocate where it has the capacity.
void copyParameters(std::vector<ParameterChunk> &chunks, llvm::ArrayRef<std::byte> parameters);

/// Commands with their parameter blocks. Copying a list to one that was a copy of it before, and
/// filling one again after `clear`, does not allocate.
class HostCommandList {
public:
  size_t size() const { return entries_.size(); }
  const HostCommand &operator[](size_t index) const { return entries_[index].command; }
  llvm::ArrayRef<std::byte> parameters(size_t index) const;
  /// How many bytes of parameters the command had when it was added.
  size_t parameterRoom(size_t index) const { return entries_[index].room; }
  /// How many bytes the elements of a fill had when it was added.
  unsigned elementRoom(size_t index) const { return entries_[index].elementRoom; }

  void clear();
  void add(const HostCommand &command, llvm::ArrayRef<std::byte> parameters);
  /// At most `parameterRoom` bytes of parameters.
  void replace(size_t index, const HostCommand &command, llvm::ArrayRef<std::byte> parameters);
  void run(size_t index) const;

private:
  struct Entry {
    HostCommand command;
    size_t firstChunk, room, parameterBytes;
    unsigned elementRoom;
  };
  std::byte *block(const Entry &entry);

  std::vector<Entry> entries_;
  std::vector<ParameterChunk> chunks_;
};

} // namespace rondo
