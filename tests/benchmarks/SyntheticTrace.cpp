//===- SyntheticTrace.cpp - Traces of any size for benchmarks ---------------===//

#include "SyntheticTrace.h"

#include "rondo/ir/TraceBuilder.h"

using namespace rondo;

namespace {

constexpr unsigned opsPerLayer = 12;
constexpr unsigned layersPerSync = 16;
constexpr unsigned numWeights = 64;

/// Builds one layer after the other on an activation of shape [8, 32].
class NetworkBuilder {
public:
  NetworkBuilder(const OpRegistry &registry, unsigned numLayers) : builder_(registry, "synthetic") {
    const Device device = Device::cuda(0);
    x_ = builder_.argument("x", TensorType(DType::F32, {8, 32}, device));
    statistic_ =
        builder_.argument("statistic", TensorType(DType::F32, {32}, device), ValueTags::Buffer);
    for (unsigned i = 0; i < numWeights; ++i)
      weights_.push_back(
          builder_.argument("w", TensorType(DType::F32, {32, 32}, device), ValueTags::Parameter));
    for (unsigned layer = 0; layer < numLayers; ++layer)
      addLayer(layer);
    builder_.returnValues({x_});
  }

  Trace finish() { return llvm::cantFail(std::move(builder_).finish()); }

private:
  ValueId named(const char *name, ValueId value) {
    builder_.nameResults({name});
    return value;
  }

  void addLayer(unsigned layer) {
    builder_.setModulePath("blocks." + std::to_string(layer % 1000));
    const Dims transposed = {1, 0}, heads = {8, 4, 8}, flat = {8, 32};
    ValueId w = weights_[layer % numWeights];
    ValueId t = named("t", builder_.op("permute", {w}, {{"dims", transposed}}));
    ValueId h = named("mm", builder_.op("mm", {x_, t}));
    ValueId v = named("view", builder_.op("reshape", {h}, {{"shape", heads}}));
    ValueId p = named("softmax", builder_.op("softmax", {v}, {{"dim", 2}}));
    ValueId m = named("mul", builder_.op("mul", {v, p}));
    ValueId f = named("flat", builder_.op("reshape", {m}, {{"shape", flat}}));
    ValueId g = named("gelu", builder_.op("gelu", {f}));
    ValueId r = named("add", builder_.op("add", {g, x_}));
    ValueId e = named("mean", builder_.op("mean", {r}, {{"dims", Attribute::List{0}}}));
    statistic_ = named("stat", builder_.op("add_", {statistic_, e}));
    x_ = named("out", builder_.op("relu", {r}));
    if (layer % layersPerSync == layersPerSync - 1)
      builder_.ops("print", {e});
  }

  TraceBuilder builder_;
  ValueId x_, statistic_;
  std::vector<ValueId> weights_;
};

} // namespace

TracePair rondo::makeSyntheticPair(const OpRegistry &registry, unsigned numOps) {
  Trace trace = NetworkBuilder(registry, (numOps + opsPerLayer - 1) / opsPerLayer).finish();
  for (uint32_t i = 0; i < trace.numOps(); ++i)
    if (!trace.op(OpId(i)).spec().terminator)
      trace.setClaim(OpId(i), Claim{"host", true, "", 0});
  trace.setProperties(TraceProperties::Claimed);
  return TracePair(std::move(trace));
}
