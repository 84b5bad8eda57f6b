//===- CoreOpsCollective.cpp - Communication between ranks ----------------===//
//
// A collective writes its communicator, named by `group`: collectives of one group keep their
// order.
//
//===----------------------------------------------------------------------===//

#include "CoreOpsTable.h"

using namespace rondo;
using Kind = AttributeKind;

/// The number of ranks, at least 1.
static llvm::Expected<int64_t> worldSize(const Inference &in) {
  RONDO_LET(world, in.constant("world"));
  if (world < 1)
    return expects("attribute 'world' of at least 1, got " + llvm::Twine(world));
  return world;
}

/// Divides `size` among `world` ranks.
static llvm::Error divide(Dim &size, int64_t world) {
  std::optional<Dim> part = Dim::exactQuotient(size, world);
  if (!part)
    return expects("attribute 'world' to divide size " + size.str() + ", got " +
                   llvm::Twine(world));
  size = *part;
  return llvm::Error::success();
}

static llvm::Error inferAllGather(Inference &in) {
  RONDO_LET(world, worldSize(in));
  RONDO_LET(dim, in.dimOf(0, "dim"));
  Dims shape = in.tensor(0).shape;
  shape[dim] = shape[dim] * Dim(world);
  return in.fresh(in.tensor(0).dtype, std::move(shape));
}

static llvm::Error inferReduceScatter(Inference &in) {
  RONDO_LET(world, worldSize(in));
  RONDO_LET(dim, in.dimOf(0, "dim"));
  Dims shape = in.tensor(0).shape;
  RONDO_TRY(divide(shape[dim], world));
  return in.fresh(in.tensor(0).dtype, std::move(shape));
}

static llvm::Error inferAllToAll(Inference &in) {
  RONDO_LET(world, worldSize(in));
  RONDO_LET(split, in.dimOf(0, "split_dim"));
  RONDO_LET(concat, in.dimOf(0, "concat_dim"));
  Dims shape = in.tensor(0).shape;
  RONDO_TRY(divide(shape[split], world));
  shape[concat] = shape[concat] * Dim(world);
  return in.fresh(in.tensor(0).dtype, std::move(shape));
}

static OpDef collective(llvm::StringRef name, llvm::StringRef summary) {
  OpDef def(name, summary);
  def.attr("group", Kind::String, "world");
  def.namedResource(ResourceKind::Communicator, "group", /*writes=*/true);
  return def;
}

static OpDef &reduceAttribute(OpDef &def) {
  return def.attr("op", Kind::String, "sum").oneOf("op", {"sum", "avg", "prod", "min", "max"});
}

void rondo::addCollectiveOps(OpTable &table) {
  OpDef allReduce = collective("all_reduce", "the ranks' tensors combined, on every rank");
  table.add(reduceAttribute(allReduce.in("x")).infer(inferSameType));
  table.add(collective("all_gather", "the ranks' tensors one after the other along dim")
                .in("x")
                .attr("world", Kind::Int)
                .attr("dim", Kind::Int, 0)
                .infer(inferAllGather));
  OpDef reduceScatter = collective("reduce_scatter", "this rank's part along dim of the ranks' "
                                                     "tensors combined");
  table.add(reduceAttribute(reduceScatter.in("x"))
                .attr("world", Kind::Int)
                .attr("dim", Kind::Int, 0)
                .infer(inferReduceScatter));
  table.add(collective("broadcast", "the tensor of rank root, on every rank")
                .in("x")
                .attr("root", Kind::Int)
                .atLeast("root", 0)
                .infer(inferSameType));
  table.add(collective("all_to_all", "part i along split_dim goes to rank i, which joins what it "
                                     "gets along concat_dim")
                .in("x")
                .attr("world", Kind::Int)
                .attr("split_dim", Kind::Int, 0)
                .attr("concat_dim", Kind::Int, 0)
                .infer(inferAllToAll));
  table.add(
      collective("barrier", "waits, on the stream, for every rank").out("").infer([](Inference &) {
        return llvm::Error::success();
      }));
}
