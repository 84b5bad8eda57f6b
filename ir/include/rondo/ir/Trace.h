//===- Trace.h - A straight-line program in SSA form ------------*- C++ -*-===//
//
// A trace owns everything in it: values, ops, bodies, types, names, claims. Things are named by
// typed ids (Ids.h) that are trace-wide, never reused, and kept when an op moves into a body.
// Program order is a vector of op ids per body. An op may carry bodies; a body is isolated from
// above: what it needs comes in through its arguments, which are operands of the op.
//
// Every use of a value is by id; there are no use lists. Passes make one sweep and rebuild the
// order (setOps).
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rondo/ir/CaptureDomain.h"
#include "rondo/ir/Claim.h"
#include "rondo/ir/Diagnostic.h"
#include "rondo/ir/FusionRecord.h"
#include "rondo/ir/Ids.h"
#include "rondo/ir/OpRegistry.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Allocator.h"

#include <deque>

namespace rondo {

/// Tags of a value. They hold for its storage root: a view of a parameter is static.
enum class ValueTags : uint8_t {
  None = 0,
  Parameter = 1, ///< trained; its address does not move between calls
  Buffer = 2,    ///< model state that is not trained; its address does not move between calls
  Static = 4,    ///< its address does not move between calls
  Recompute = 8, ///< to be recomputed in the backward rather than saved
};
constexpr ValueTags operator|(ValueTags a, ValueTags b) {
  return ValueTags(uint8_t(a) | uint8_t(b));
}
constexpr ValueTags operator&(ValueTags a, ValueTags b) {
  return ValueTags(uint8_t(a) & uint8_t(b));
}
constexpr bool any(ValueTags tags) { return tags != ValueTags::None; }
inline constexpr ValueTags staticTags =
    ValueTags::Parameter | ValueTags::Buffer | ValueTags::Static;

/// What is known to hold for a trace; passes require, forbid and set them.
enum class TraceProperties : uint8_t {
  None = 0,
  Claimed = 1,    ///< every op has a claim
  HasRegions = 2, ///< regions were made
  HasDels = 4,    ///< `del` ops were placed
};
constexpr TraceProperties operator|(TraceProperties a, TraceProperties b) {
  return TraceProperties(uint8_t(a) | uint8_t(b));
}
constexpr TraceProperties operator&(TraceProperties a, TraceProperties b) {
  return TraceProperties(uint8_t(a) & uint8_t(b));
}
constexpr TraceProperties operator~(TraceProperties a) { return TraceProperties(~uint8_t(a) & 7); }
constexpr bool any(TraceProperties properties) { return properties != TraceProperties::None; }
/// Single properties in order, and their names: `claimed`, `regions`, `dels`.
inline constexpr TraceProperties allTraceProperties[] = {
    TraceProperties::Claimed, TraceProperties::HasRegions, TraceProperties::HasDels};
llvm::StringRef tracePropertyName(TraceProperties single);
/// Single tags in order, and their names: `parameter`, `buffer`, `static`, `recompute`.
inline constexpr ValueTags allValueTags[] = {ValueTags::Parameter, ValueTags::Buffer,
                                             ValueTags::Static, ValueTags::Recompute};
llvm::StringRef valueTagName(ValueTags single);

/// One op. Owned by its trace, at a stable address for the trace's life; changed only through the
/// trace.
class Op {
public:
  OpId id() const { return id_; }
  llvm::StringRef name() const { return spec_->name; }
  const OpSpec &spec() const { return *spec_; }

  llvm::ArrayRef<ValueId> operands() const { return operands_; }
  ValueId operand(unsigned i) const { return operands_[i]; }
  llvm::ArrayRef<ValueId> results() const { return results_; }
  ValueId result(unsigned i = 0) const { return results_[i]; }
  llvm::ArrayRef<BodyId> bodies() const { return bodies_; }

  /// Sorted by name.
  llvm::ArrayRef<NamedAttribute> attributes() const { return attributes_; }
  /// The attribute as stored, or the default of the spec; null when it has neither.
  const Attribute *attribute(llvm::StringRef name) const;

  /// The body that holds the op; invalid while it is detached.
  BodyId body() const { return body_; }

  /// Where in the user's model, e.g. `blocks.0.mlp`; may be empty.
  llvm::StringRef modulePath() const { return modulePath_; }
  /// Where in a source file; null when unknown. Borrowed from the trace.
  const Location *location() const { return location_; }
  /// True if the location was written in the input or set by a builder, rather than being the place
  /// in a text file that the op was read from. Only such locations are printed.
  bool hasExplicitLocation() const { return explicitLocation_; }

  /// Null when unclaimed. Borrowed from the trace.
  const Claim *claim() const { return claim_; }
  /// Null before CUDAGraphTransform ran.
  const FusionRecord *fusionRecord() const { return fusionRecord_; }
  /// The domain of a `cuda_graph` op, else null.
  CaptureDomain *domain() const { return domain_; }

private:
  friend class Trace;

  OpId id_;
  BodyId body_;
  const OpSpec *spec_ = nullptr;
  llvm::SmallVector<ValueId, 4> operands_;
  llvm::SmallVector<ValueId, 2> results_;
  llvm::SmallVector<BodyId, 0> bodies_;
  std::vector<NamedAttribute> attributes_;
  llvm::StringRef modulePath_;
  const Location *location_ = nullptr;
  const Claim *claim_ = nullptr;
  const FusionRecord *fusionRecord_ = nullptr;
  CaptureDomain *domain_ = nullptr;
  bool explicitLocation_ = false;
};

/// What a new op is made of. `resultTypes` must be given; TraceBuilder infers them.
struct OpInit {
  const OpSpec *spec = nullptr;
  llvm::SmallVector<ValueId, 4> operands;
  llvm::SmallVector<Type, 2> resultTypes;
  llvm::SmallVector<std::pair<llvm::StringRef, Attribute>, 4> attributes;
  llvm::SmallVector<llvm::StringRef, 2>
      resultNames;        ///< shorter than results, or empty names: unnamed
  unsigned numBodies = 0; ///< created empty, with the op as parent
};

/// Moved, never copied by accident (see clone). Not thread-safe for writing; may be read from
/// several threads.
class Trace {
public:
  /// `registry` must outlive the trace.
  explicit Trace(const OpRegistry &registry, llvm::StringRef name = "trace");
  Trace(Trace &&) noexcept;
  Trace &operator=(Trace &&) noexcept;
  Trace(const Trace &) = delete;
  Trace &operator=(const Trace &) = delete;
  ~Trace();

  /// A deep copy: equal ids, names, types; capture domains are shared.
  Trace clone() const;

  const OpRegistry &registry() const { return *registry_; }
  llvm::StringRef name() const { return name_; }
  void setName(llvm::StringRef name) { name_ = name.str(); }
  TraceProperties properties() const { return properties_; }
  bool has(TraceProperties properties) const { return (properties_ & properties) == properties; }
  void setProperties(TraceProperties properties) { properties_ = properties; }

  //===--- Values ---------------------------------------------------------===//

  /// One past the largest value index ever used: the size for side tables.
  uint32_t numValues() const { return values_.size(); }
  /// Borrowed; stays valid as long as the trace. Equal types of one trace have equal addresses.
  const Type &type(ValueId value) const { return *valueData(value).type; }
  /// The tensor type; asserts that the value is a tensor.
  const TensorType &tensorType(ValueId value) const { return *type(value).asTensor(); }
  /// Without '%'; empty when unnamed. Unique within a body. Equal names of one trace have equal
  /// addresses.
  llvm::StringRef name(ValueId value) const { return valueData(value).name; }
  ValueTags tags(ValueId value) const { return valueData(value).tags; }
  /// Invalid for an argument.
  OpId definingOp(ValueId value) const { return valueData(value).op; }
  bool isArgument(ValueId value) const { return !valueData(value).op; }
  /// The body whose argument it is, or that holds the defining op; invalid while that is detached.
  BodyId owner(ValueId value) const;
  /// Position among the arguments of its body or the results of its op.
  unsigned index(ValueId value) const { return valueData(value).index; }
  /// Where in the user's model an argument comes from (`blocks.0.mlp.weight`); may be empty.
  llvm::StringRef valuePath(ValueId value) const;

  void setType(ValueId value, const Type &type) { values_[value.index()].type = internType(type); }
  /// `name` must be a valid value name (see isValueName) or empty. Uniqueness within a body is the
  /// caller's duty and is checked by the verifier.
  void setName(ValueId value, llvm::StringRef name);
  void setTags(ValueId value, ValueTags tags) { values_[value.index()].tags = tags; }
  void setValuePath(ValueId value, llvm::StringRef path);
  /// A letter or '_', then letters, digits, '_', '.', '$'.
  static bool isValueName(llvm::StringRef name);

  //===--- Bodies ---------------------------------------------------------===//

  /// The body of the trace itself.
  static constexpr BodyId topBody() { return BodyId(0); }
  uint32_t numBodies() const { return bodies_.size(); }
  /// The op that carries the body; invalid for the top body.
  OpId parentOp(BodyId body) const { return bodies_[body.index()].parent; }
  llvm::ArrayRef<ValueId> arguments(BodyId body) const { return bodies_[body.index()].arguments; }
  llvm::ArrayRef<ValueId> arguments() const { return arguments(topBody()); }
  /// Program order.
  llvm::ArrayRef<OpId> ops(BodyId body) const { return bodies_[body.index()].ops; }
  llvm::ArrayRef<OpId> ops() const { return ops(topBody()); }
  /// The last op if it is a terminator, else null. Found by trait, not by name.
  const Op *terminator(BodyId body) const;
  const Op *terminator() const { return terminator(topBody()); }

  ValueId addArgument(BodyId body, const Type &type, llvm::StringRef name = {},
                      ValueTags tags = ValueTags::None);
  ValueId addArgument(const Type &type, llvm::StringRef name = {},
                      ValueTags tags = ValueTags::None) {
    return addArgument(topBody(), type, name, tags);
  }
  /// Removes the i-th argument; the value must have no uses left, and its id is not reused.
  void eraseArgument(BodyId body, unsigned i);

  //===--- Ops ------------------------------------------------------------===//

  /// One past the largest op index ever used: the size for side tables.
  uint32_t numOps() const { return ops_.size(); }
  const Op &op(OpId id) const { return *ops_[id.index()]; }
  bool isErased(OpId id) const { return !ops_[id.index()]; }

  /// Makes a detached op. Put it somewhere with append or setOps.
  OpId createOp(OpInit init);
  void append(BodyId body, OpId op);
  void insert(BodyId body, size_t position, OpId op);
  /// Replaces the order of `body`. Ops that were in it and are not in `order` become detached; ops
  /// may come from anywhere, but no op may be in two bodies.
  void setOps(BodyId body, std::vector<OpId> order);
  /// Removes an op, its bodies and results for good. It must be detached or in `ops(body)`;
  /// removing one op by one is linear each: to remove many, use setOps first.
  void eraseOp(OpId op);

  void setOperand(OpId op, unsigned i, ValueId value) { ops_[op.index()]->operands_[i] = value; }
  void setOperands(OpId op, llvm::ArrayRef<ValueId> operands);
  void setAttribute(OpId op, llvm::StringRef name, Attribute value);
  void removeAttribute(OpId op, llvm::StringRef name);
  void setModulePath(OpId op, llvm::StringRef path) {
    ops_[op.index()]->modulePath_ = intern(path);
  }
  void setLocation(OpId op, Location location, bool isExplicit = true);
  void setClaim(OpId op, const Claim &claim);
  void clearClaim(OpId op) { ops_[op.index()]->claim_ = nullptr; }
  void setFusionRecord(OpId op, const FusionRecord &record);
  void clearFusionRecord(OpId op) { ops_[op.index()]->fusionRecord_ = nullptr; }
  void setDomain(OpId op, CaptureDomainRef domain);
  /// Copies name-independent annotations (module path, location, claim, fusion record) of `from`,
  /// which may be of `other`.
  void copyAnnotations(OpId to, const Trace &other, OpId from);

  /// Appends a result to an op; for ops whose results are found after they were made.
  ValueId addResult(OpId op, const Type &type, llvm::StringRef name = {},
                    ValueTags tags = ValueTags::None);

  /// Appends an empty body to an op; for readers, which meet the bodies after they made the op.
  BodyId addBody(OpId op);

  /// Every use of a key in `body` and the bodies nested in it becomes a use of its value. Linear.
  void replaceUses(BodyId body, const llvm::DenseMap<ValueId, ValueId> &replacements);

  //===--- Saved links ----------------------------------------------------===//
  // Kept here per return operand and per argument; changed by TracePair only.

  /// The link of the i-th operand of the top body's `return`; invalid for one that the user gets.
  SavedId savedReturn(unsigned i) const {
    return i < savedReturns_.size() ? savedReturns_[i] : SavedId();
  }
  /// The link of the i-th argument of the top body.
  SavedId savedArgument(unsigned i) const {
    return i < savedArguments_.size() ? savedArguments_[i] : SavedId();
  }

  //===--- Interning ------------------------------------------------------===//

  /// A copy that lives as long as the trace.
  llvm::StringRef intern(llvm::StringRef text) { return strings_.insert(text).first->getKey(); }
  const Type *internType(const Type &type);
  /// The spec for an op that the registry does not know; the same for the same name. Worst-case
  /// effects.
  const OpSpec *opaqueSpec(llvm::StringRef name);

private:
  friend class TracePair;

  struct ValueData {
    const Type *type = nullptr;
    llvm::StringRef name;
    OpId op;     // defining op
    BodyId body; // for arguments
    uint32_t index = 0;
    ValueTags tags = ValueTags::None;
  };
  struct BodyData {
    OpId parent;
    llvm::SmallVector<ValueId, 0> arguments;
    std::vector<OpId> ops;
  };

  const ValueData &valueData(ValueId value) const { return values_[value.index()]; }
  ValueId createValue(const Type &type, llvm::StringRef name, ValueTags tags);
  void eraseBody(BodyId body);

  const OpRegistry *registry_;
  std::string name_;
  TraceProperties properties_ = TraceProperties::None;
  std::vector<ValueData> values_;
  std::vector<BodyData> bodies_;
  std::vector<Op *> ops_; // null when erased
  std::unique_ptr<llvm::SpecificBumpPtrAllocator<Op>> opStorage_;
  llvm::StringSet<> strings_;
  std::deque<Type> types_;
  llvm::DenseMap<size_t, llvm::SmallVector<const Type *, 1>> typesByHash_;
  std::deque<Claim> claims_;
  std::deque<FusionRecord> fusionRecords_;
  std::deque<Location> locations_;
  llvm::DenseMap<const CaptureDomain *, CaptureDomainRef> domains_; // kept alive
  std::vector<std::unique_ptr<OpSpec>> opaqueSpecs_;
  llvm::StringMap<const OpSpec *> opaqueSpecsByName_;
  llvm::DenseMap<ValueId, llvm::StringRef> valuePaths_;
  llvm::SmallVector<SavedId, 0> savedReturns_, savedArguments_;
};

/// Calls `visit(op)` for every op of `body` in program order, an op before those of its bodies.
template <typename Visit> void forEachOp(const Trace &trace, BodyId body, Visit &&visit) {
  for (OpId id : trace.ops(body)) {
    const Op &op = trace.op(id);
    visit(op);
    for (BodyId nested : op.bodies())
      forEachOp(trace, nested, visit);
  }
}
template <typename Visit> void forEachOp(const Trace &trace, Visit &&visit) {
  forEachOp(trace, Trace::topBody(), visit);
}

/// The place of `op` for diagnostics: its location if known, else the trace's name and the op's
/// text.
Location locationOf(const Trace &trace, OpId op);

} // namespace rondo
