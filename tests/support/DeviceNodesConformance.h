//===- DeviceNodesConformance.h - What nodes do, and are told to -*- C++ -*-===//
//
// The part of the devices' suite that is about the parameters of nodes: reading them, gathers, and
// execs that take those of another graph. See DeviceConformance.h.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "support/DeviceConformance.h"

namespace rondo {

class DeviceNodesConformance : public DeviceConformance {
protected:
  using Bytes = std::vector<uint8_t>;

  static std::vector<std::byte> bytesOf(const KernelLaunch &launch) {
    return launch.parameters.vec();
  }
  void run(GraphExec &exec) {
    auto s = stream();
    ok(exec.launch(*s));
    ok(s->synchronize());
  }

  /// A fill of `p[0]` with `value`, a kernel that adds 1, and a copy to `p[1]`, each after the
  /// last.
  std::unique_ptr<Graph> chain(const std::shared_ptr<int> &p, uint8_t value) {
    auto graph = ok(device->createGraph());
    GraphNodeId fill = ok(graph->addFill(p.get(), value, 4, {}));
    GraphNodeId add = ok(graph->addKernel(add1(p), fill));
    ok(graph->addCopy(p.get() + 1, p.get(), 4, add));
    return graph;
  }
  /// The same as a capture.
  std::unique_ptr<Graph> capturedChain(const std::shared_ptr<int> &p, uint8_t value) {
    auto s = stream();
    ok(s->beginCapture(CaptureMode::ThreadLocal));
    ok(s->fill(p.get(), value, 4));
    ok(s->launch(add1(p)));
    ok(s->copy(p.get() + 1, p.get(), 4));
    return ok(s->endCapture());
  }
  /// `p + i`, which keeps `p`.
  static std::shared_ptr<int> at(const std::shared_ptr<int> &p, size_t i) {
    return {p, p.get() + i};
  }

  /// Pieces of these sizes, one behind the other with a gap of `gap` bytes before each.
  static std::vector<CopyPiece> pieces(uint8_t *to, size_t toGap, const uint8_t *from,
                                       size_t fromGap, const std::vector<size_t> &sizes) {
    std::vector<CopyPiece> result;
    for (size_t bytes : sizes) {
      to += toGap;
      from += fromGap;
      result.push_back({to, from, bytes});
      to += bytes;
      from += bytes;
    }
    return result;
  }
  /// What `n` bytes at `to` must be after `pieces` of memory that was `from` at `source`, if they
  /// were 0 before.
  static Bytes gathered(const uint8_t *to, size_t n, const uint8_t *source, const Bytes &from,
                        llvm::ArrayRef<CopyPiece> pieces) {
    Bytes result(n);
    for (const CopyPiece &piece : pieces)
      std::copy_n(from.begin() + (static_cast<const uint8_t *>(piece.source) - source), piece.bytes,
                  result.begin() + (static_cast<uint8_t *>(piece.destination) - to));
    return result;
  }
  /// Device memory with bytes that differ from their neighbours, and what they are.
  std::pair<std::shared_ptr<uint8_t>, Bytes> pattern(size_t n) {
    Bytes bytes(n);
    for (size_t i = 0; i < n; ++i)
      bytes[i] = uint8_t(1 + i % 251);
    auto data = zeros<uint8_t>(n);
    auto s = stream();
    ok(s->copy(data.get(), bytes.data(), n));
    ok(s->synchronize());
    return {data, bytes};
  }
};

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// A graph tells of every node what it was added as, also after it has changed.
TEST_P(DeviceNodesConformance, ReadsNodes) {
  auto x = zeros<float>(4), y = zeros<float>(4);
  auto graph = ok(device->createGraph());
  PackedLaunch axpy = kernel(TestKernel::Axpy, 2.0f, x.get(), y.get(), 3);
  KernelLaunch launch = axpy;
  launch.grid = {3, 2, 1};
  launch.block = {4, 1, 2};
  launch.sharedBytes = 64;
  GraphNodeId run = ok(graph->addKernel(launch, {}));
  GraphNodeId fill = ok(graph->addFill(x.get() + 1, 7, 12, run));
  GraphNodeId copy = ok(graph->addCopy(y.get() + 1, x.get() + 2, 8, fill));
  GraphNodeId empty = ok(graph->addEmpty(copy));
  GraphNodeId noBytes = ok(graph->addFill(nullptr, 7, 0, empty));

  GraphNodeParameters read = ok(graph->parameters(run));
  EXPECT_EQ(read.kind, GraphNodeKind::Kernel);
  EXPECT_EQ(read.kernel.function, launch.function);
  EXPECT_EQ(read.kernel.grid, launch.grid);
  EXPECT_EQ(read.kernel.block, launch.block);
  EXPECT_EQ(read.kernel.sharedBytes, 64u);
  EXPECT_EQ(bytesOf(read.kernel), bytesOf(axpy));
  read = ok(graph->parameters(fill));
  EXPECT_EQ(read.kind, GraphNodeKind::Fill);
  EXPECT_EQ(read.destination, x.get() + 1);
  EXPECT_EQ(read.value, FillValue(7));
  EXPECT_EQ(read.bytes, 12u);
  read = ok(graph->parameters(copy));
  EXPECT_EQ(read.kind, GraphNodeKind::Copy);
  EXPECT_EQ(read.destination, y.get() + 1);
  EXPECT_EQ(read.source, x.get() + 2);
  EXPECT_EQ(read.bytes, 8u);
  EXPECT_EQ(ok(graph->parameters(empty)).kind, GraphNodeKind::Empty);
  read = ok(graph->parameters(noBytes));
  EXPECT_EQ(read.kind, GraphNodeKind::Fill);
  EXPECT_EQ(read.bytes, 0u);
}

/// A graph tells the same of nodes that were captured.
TEST_P(DeviceNodesConformance, ReadsCapturedNodes) {
  auto p = zeros(2);
  auto graph = capturedChain(p, 3);
  ASSERT_EQ(graph->numNodes(), 3u);
  GraphNodeParameters read = ok(graph->parameters(GraphNodeId(0)));
  EXPECT_EQ(read.kind, GraphNodeKind::Fill);
  EXPECT_EQ(read.destination, p.get());
  EXPECT_EQ(read.value, FillValue(3));
  EXPECT_EQ(read.bytes, 4u);
  read = ok(graph->parameters(GraphNodeId(1)));
  EXPECT_EQ(read.kind, GraphNodeKind::Kernel);
  EXPECT_EQ(read.kernel.function, GetParam().kernel(*device, TestKernel::Add1));
  EXPECT_EQ(bytesOf(read.kernel), bytesOf(add1(p)));
  read = ok(graph->parameters(GraphNodeId(2)));
  EXPECT_EQ(read.kind, GraphNodeKind::Copy);
  EXPECT_EQ(read.destination, p.get() + 1);
  EXPECT_EQ(read.source, p.get());
  EXPECT_EQ(read.bytes, 4u);
}

/// What is no node cannot be read.
TEST_P(DeviceNodesConformance, ReadsNoOtherNodes) {
  auto graph = chain(zeros(2), 1);
  ok(graph->parameters(GraphNodeId(2)));
  EXPECT_EQ(outcome(graph->parameters(GraphNodeId(3))), "invalid argument");
  EXPECT_EQ(outcome(graph->parameters(GraphNodeId())), "invalid argument");
}

/// An exec whose nodes are set to what was read does what it did; with other addresses it does that
/// there, and touches nothing at the old ones. However the nodes came to be.
TEST_P(DeviceNodesConformance, SetsWhatWasRead) {
  for (bool isCaptured : {false, true}) {
    SCOPED_TRACE(isCaptured ? "captured" : "added");
    auto p = zeros(4);
    auto graph = isCaptured ? capturedChain(p, 1) : chain(p, 1);
    auto exec = ok(graph->instantiate());
    for (size_t i = 0; i < graph->numNodes(); ++i)
      ok(exec->set(GraphNodeId(i), ok(graph->parameters(GraphNodeId(i)))));
    run(*exec);
    EXPECT_THAT(read(p, 4), testing::ElementsAre(0x01010102, 0x01010102, 0, 0));
    ok(stream()->fill(p.get(), 0, 16));
    ok(device->synchronize());
    int *moved = p.get() + 2;
    for (size_t i = 0; i < graph->numNodes(); ++i) {
      GraphNodeParameters parameters = ok(graph->parameters(GraphNodeId(i)));
      std::vector<std::byte> block = bytesOf(parameters.kernel);
      if (parameters.kind == GraphNodeKind::Kernel)
        std::memcpy(block.data(), &moved, sizeof(moved));
      parameters.kernel.parameters = block;
      if (parameters.destination)
        parameters.destination = static_cast<int *>(parameters.destination) + 2;
      if (parameters.source)
        parameters.source = static_cast<const int *>(parameters.source) + 2;
      ok(exec->set(GraphNodeId(i), parameters));
    }
    run(*exec);
    EXPECT_THAT(read(p, 4), testing::ElementsAre(0, 0, 0x01010102, 0x01010102));
  }
}

/// Parameters of no kind that can be set, of another kind than the node's, or for no node are
/// refused; those of an empty node are none.
TEST_P(DeviceNodesConformance, SetRefuses) {
  auto p = zeros(2);
  auto graph = chain(p, 1);
  auto exec = ok(graph->instantiate());
  GraphNodeParameters fill = ok(graph->parameters(GraphNodeId(0))), none, other, conditional;
  other.kind = GraphNodeKind::Other;
  conditional.kind = GraphNodeKind::Conditional;
  EXPECT_EQ(outcome(exec->set(GraphNodeId(1), fill)), "invalid argument");
  EXPECT_EQ(outcome(exec->set(GraphNodeId(3), fill)), "invalid argument");
  EXPECT_EQ(outcome(exec->set(GraphNodeId(0), other)), "invalid argument");
  EXPECT_EQ(outcome(exec->set(GraphNodeId(0), conditional)), "invalid argument");
  ok(exec->set(GraphNodeId(0), none));
  run(*exec);
  EXPECT_THAT(read(p, 2), testing::ElementsAre(0x01010102, 0x01010102));
}

//===----------------------------------------------------------------------===//
// Fills with elements
//===----------------------------------------------------------------------===//

/// A fill with elements of several bytes keeps them when it is moved, and can be told to write
/// shorter ones.
TEST_P(DeviceNodesConformance, FillsWithElements) {
  auto p = zeros(8);
  auto graph = ok(device->createGraph());
  GraphNodeId four = ok(graph->addFill(p.get(), {0x04030201, 4}, 8, {}));
  GraphNodeId two = ok(graph->addFill(p.get() + 2, {0x0605, 2}, 8, {}));
  auto exec = ok(graph->instantiate());
  run(*exec);
  EXPECT_THAT(read(p, 8),
              testing::ElementsAre(0x04030201, 0x04030201, 0x06050605, 0x06050605, 0, 0, 0, 0));
  GraphNodeParameters parameters = ok(graph->parameters(four));
  EXPECT_EQ(parameters.value, FillValue(0x04030201, 4));
  EXPECT_EQ(parameters.bytes, 8u);
  EXPECT_EQ(ok(graph->parameters(two)).value, FillValue(0x0605, 2));
  parameters.destination = p.get() + 4;
  ok(exec->set(four, parameters));
  ok(exec->setFill(two, p.get() + 6, 9, 8));
  run(*exec);
  EXPECT_THAT(read(at(p, 4), 4),
              testing::ElementsAre(0x04030201, 0x04030201, 0x09090909, 0x09090909));
}

/// Elements lie whole and aligned in what they fill, and a node's do not become longer.
TEST_P(DeviceNodesConformance, FillRefusesElements) {
  auto p = zeros(2);
  auto *bytes = reinterpret_cast<uint8_t *>(p.get());
  auto graph = ok(device->createGraph());
  FillValue two(0x0201, 2), four(0x04030201, 4);
  EXPECT_EQ(outcome(graph->addFill(bytes + 1, two, 2, {})), "invalid argument");
  EXPECT_EQ(outcome(graph->addFill(bytes + 2, four, 4, {})), "invalid argument");
  EXPECT_EQ(outcome(graph->addFill(bytes, four, 6, {})), "invalid argument");
  GraphNodeId node = ok(graph->addFill(bytes, two, 4, {}));
  auto exec = ok(graph->instantiate());
  EXPECT_EQ(outcome(exec->setFill(node, bytes, four, 4)), "invalid argument");
  EXPECT_EQ(outcome(exec->setFill(node, bytes + 1, two, 4)), "invalid argument");
  EXPECT_EQ(outcome(exec->setFill(node, bytes, two, 3)), "invalid argument");
  run(*exec);
  EXPECT_THAT(read(p, 2), testing::ElementsAre(0x02010201, 0));
}

//===----------------------------------------------------------------------===//
// Gathers
//===----------------------------------------------------------------------===//

/// A gather copies every piece whole, whatever sizes and alignments they have, and nothing else;
/// also elsewhere, when it is set.
TEST_P(DeviceNodesConformance, GathersPieces) {
  const std::vector<size_t> sizes = {16, 0, 1, 3, 4, 17, 4096, 100'003, 64, 8192, 8193, 0};
  const size_t n = 130'000;
  auto [from, bytes] = pattern(n);
  for (size_t gap : {16, 1, 4, 2, 7}) {
    SCOPED_TRACE(gap);
    auto to = zeros<uint8_t>(n), other = zeros<uint8_t>(n);
    auto graph = ok(device->createGraph());
    auto first = pieces(to.get(), gap, from.get(), 16, sizes),
         second = pieces(other.get(), 16, from.get(), gap, sizes);
    GraphNodeId gather = ok(graph->addGather(first, {}));
    EXPECT_EQ(graph->kind(gather), GraphNodeKind::Kernel);
    auto exec = ok(graph->instantiate());
    run(*exec);
    EXPECT_EQ(read(to, n), gathered(to.get(), n, from.get(), bytes, first));
    EXPECT_EQ(read(other, n), Bytes(n));
    ok(stream()->fill(to.get(), 0, n));
    ok(device->synchronize());
    ok(exec->setGather(gather, second));
    run(*exec);
    EXPECT_EQ(read(other, n), gathered(other.get(), n, from.get(), bytes, second));
    EXPECT_EQ(read(to, n), Bytes(n));
  }
}

/// Where all addresses are aligned to 16 bytes a gather copies the same.
TEST_P(DeviceNodesConformance, GathersAlignedPieces) {
  const std::vector<size_t> sizes = {16, 32, 4096, 65'536, 16};
  const size_t n = 70'000;
  auto [from, bytes] = pattern(n);
  auto to = zeros<uint8_t>(n);
  auto graph = ok(device->createGraph());
  auto all = pieces(to.get(), 16, from.get(), 32, sizes);
  all[2].bytes = 4093; // the last bytes are no 16
  ok(graph->addGather(all, {}));
  run(*ok(graph->instantiate()));
  EXPECT_EQ(read(to, n), gathered(to.get(), n, from.get(), bytes, all));
}

/// A gather may have as many pieces as there can be, and wait for another node; one of nothing does
/// nothing.
TEST_P(DeviceNodesConformance, GathersManyPiecesOrNone) {
  const size_t n = DeviceAPI::maxCopyPieces;
  auto p = zeros(1), q = zeros(n);
  std::vector<CopyPiece> all;
  for (size_t i = 0; i < n; ++i)
    all.push_back({q.get() + i, p.get(), 4});
  auto graph = ok(device->createGraph());
  GraphNodeId add = ok(graph->addKernel(add1(p), {}));
  ok(graph->addGather(all, add));
  ok(graph->addGather(std::vector<CopyPiece>(3), {}));
  run(*ok(graph->instantiate()));
  EXPECT_EQ(read(q, n), std::vector<int>(n, 1));
}

/// A gather has some pieces, and not too many, that are memory. It is set to as many of the same
/// sizes, and nothing else is.
TEST_P(DeviceNodesConformance, GatherRefuses) {
  auto p = zeros(4);
  auto graph = ok(device->createGraph());
  std::vector<CopyPiece> good = {{p.get() + 2, p.get(), 4}, {p.get() + 3, p.get() + 1, 4}};
  std::vector<CopyPiece> tooMany(DeviceAPI::maxCopyPieces + 1),
      noSource = good, noDestination = good, other = good, fewer = {good[0]};
  noSource[1].source = nullptr;
  noDestination[1].destination = nullptr;
  other[1].bytes = 3;
  for (const auto *wrong : {&tooMany, &noSource, &noDestination})
    EXPECT_EQ(outcome(graph->addGather(*wrong, {})), "invalid argument");
  EXPECT_EQ(outcome(graph->addGather({}, {})), "invalid argument");
  EXPECT_EQ(outcome(graph->addGather(good, GraphNodeId(5))), "invalid argument");
  EXPECT_EQ(graph->numNodes(), 0u);
  GraphNodeId add = ok(graph->addKernel(add1(p), {}));
  GraphNodeId gather = ok(graph->addGather(good, add));
  auto exec = ok(graph->instantiate());
  for (const auto *wrong : {&tooMany, &noSource, &noDestination, &other, &fewer})
    EXPECT_EQ(outcome(exec->setGather(gather, *wrong)), "invalid argument");
  EXPECT_EQ(outcome(exec->setGather(add, good)), "invalid argument");
  EXPECT_EQ(outcome(exec->setGather(GraphNodeId(2), good)), "invalid argument");
  EXPECT_EQ(outcome(exec->setGather(GraphNodeId(), good)), "invalid argument");
  run(*exec);
  EXPECT_THAT(read(p, 4), testing::ElementsAre(1, 0, 1, 0));
}

//===----------------------------------------------------------------------===//
// Updates
//===----------------------------------------------------------------------===//

/// An exec that is updated does what the other graph does, which may then go, and can be changed
/// and updated further.
TEST_P(DeviceNodesConformance, Updates) {
  for (bool isCaptured : {false, true}) {
    SCOPED_TRACE(isCaptured ? "captured" : "added");
    auto p = zeros(8);
    auto make = [&](size_t i, uint8_t value) {
      return isCaptured ? capturedChain(at(p, i), value) : chain(at(p, i), value);
    };
    auto exec = ok(make(0, 1)->instantiate());
    ok(exec->setFill(GraphNodeId(0), p.get(), 9, 4)); // is forgotten
    ok(exec->update(*make(2, 2)));
    run(*exec);
    EXPECT_THAT(read(p, 6), testing::ElementsAre(0, 0, 0x02020203, 0x02020203, 0, 0));
    ok(exec->setFill(GraphNodeId(0), p.get() + 4, 3, 4));
    ok(exec->setKernel(GraphNodeId(1), add1(at(p, 4))));
    ok(exec->setCopy(GraphNodeId(2), p.get() + 5, p.get() + 4, 4));
    run(*exec);
    EXPECT_THAT(read(p, 6),
                testing::ElementsAre(0, 0, 0x02020203, 0x02020203, 0x03030304, 0x03030304));
    ok(exec->update(*make(6, 4)));
    run(*exec);
    EXPECT_THAT(read(p, 8), testing::ElementsAre(0, 0, 0x02020203, 0x02020203, 0x03030304,
                                                 0x03030304, 0x04040405, 0x04040405));
  }
}

/// A gather of an exec that is updated has the pieces of the other graph, and is set to such.
TEST_P(DeviceNodesConformance, UpdatesGather) {
  auto p = zeros(4), q = zeros(4);
  ok(stream()->fill(p.get(), 1, 16));
  ok(device->synchronize());
  auto make = [&](std::vector<CopyPiece> pieces) {
    auto graph = ok(device->createGraph());
    ok(graph->addGather(pieces, {}));
    return graph;
  };
  std::vector<CopyPiece> two = {{q.get(), p.get(), 4}, {q.get() + 1, p.get(), 2}},
                         one = {{q.get() + 2, p.get(), 3}}, moved = {{q.get() + 3, p.get(), 3}};
  auto exec = ok(make(two)->instantiate());
  ok(exec->update(*make(one)));
  EXPECT_EQ(outcome(exec->setGather(GraphNodeId(0), two)), "invalid argument");
  run(*exec);
  EXPECT_THAT(read(q, 4), testing::ElementsAre(0, 0, 0x010101, 0));
  ok(exec->setGather(GraphNodeId(0), moved));
  run(*exec);
  EXPECT_THAT(read(q, 4), testing::ElementsAre(0, 0, 0x010101, 0x010101));
}

/// An exec in a capture has the parameters that it was updated to.
TEST_P(DeviceNodesConformance, UpdatedExecInCapture) {
  auto p = zeros(6);
  auto s = stream();
  auto exec = ok(chain(p, 1)->instantiate());
  ok(s->beginCapture(CaptureMode::ThreadLocal));
  ok(exec->launch(*s));
  ok(exec->update(*chain(at(p, 2), 2)));
  ok(exec->launch(*s));
  ok(exec->setFill(GraphNodeId(0), p.get() + 4, 3, 4));
  ok(exec->launch(*s));
  auto graph = ok(s->endCapture());
  EXPECT_THAT(read(p, 6), testing::Each(0));
  run(*ok(graph->instantiate()));
  EXPECT_THAT(read(p, 6),
              testing::ElementsAre(0x01010102, 0x01010102, 0x02020204, 0x02020204, 0x03030303, 0));
}

/// A graph with other nodes, kernels or dependencies is refused by the first node that differs, and
/// the exec does what it did.
TEST_P(DeviceNodesConformance, UpdateRefuses) {
  auto p = zeros(4);
  auto exec = ok(chain(p, 1)->instantiate());
  auto fewer = ok(device->createGraph()), other = ok(device->createGraph()),
       kernels = ok(device->createGraph()), free = ok(device->createGraph());
  ok(fewer->addFill(p.get() + 2, 1, 4, {}));
  GraphNodeId fill = ok(other->addFill(p.get() + 2, 1, 4, {}));
  ok(other->addCopy(p.get() + 3, p.get() + 2, 4, ok(other->addFill(p.get() + 2, 2, 4, fill))));
  fill = ok(kernels->addFill(p.get() + 2, 1, 4, {}));
  ok(kernels->addCopy(p.get() + 3, p.get() + 2, 4,
                      ok(kernels->addKernel(kernel(TestKernel::WaitFlag, p.get()), fill))));
  fill = ok(free->addFill(p.get() + 2, 1, 4, {}));
  ok(free->addKernel(add1(at(p, 2)), fill));
  ok(free->addCopy(p.get() + 3, p.get() + 2, 4, fill));
  struct Case {
    Graph &graph;
    const char *node;
  };
  for (Case wrong : {Case{*fewer, "3 nodes"}, Case{*other, "node n1 "}, Case{*kernels, "node n1 "},
                     Case{*free, "node n2 "}}) {
    std::string text = llvm::toString(exec->update(wrong.graph));
    EXPECT_THAT(text, testing::StartsWith("invalid argument: "));
    EXPECT_THAT(text, testing::HasSubstr(wrong.node));
  }
  run(*exec);
  EXPECT_THAT(read(p, 4), testing::ElementsAre(0x01010102, 0x01010102, 0, 0));
}

/// The order in which dependencies were given does not matter.
TEST_P(DeviceNodesConformance, UpdateInAnyOrderOfDependencies) {
  auto p = zeros(4);
  auto make = [&](int *at, bool isTurned) {
    auto graph = ok(device->createGraph());
    GraphNodeId a = ok(graph->addFill(at, 1, 2, {})),
                b = ok(graph->addFill(reinterpret_cast<uint8_t *>(at) + 2, 2, 2, {}));
    ok(graph->addCopy(at + 1, at, 4, isTurned ? Nodes({b, a, b}) : Nodes({a, b})));
    return graph;
  };
  auto exec = ok(make(p.get(), false)->instantiate());
  ok(exec->update(*make(p.get() + 2, true)));
  run(*exec);
  EXPECT_THAT(read(p, 4), testing::ElementsAre(0, 0, 0x02020101, 0x02020101));
}

} // namespace rondo
