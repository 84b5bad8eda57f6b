//===- VerifierStructureTest.cpp - Traces that were broken by hand ----------===//
//
// What no text can say: ops listed twice, ids of nothing, cycles. The verifier answers every such
// trace with diagnostics.
//
//===----------------------------------------------------------------------===//

#include "VerifierCases.h"

#include "rondo/ir/TraceBuilder.h"

#include "llvm/ADT/STLExtras.h"

using namespace rondo;
using namespace rondo::test;

namespace {

const TensorType f32x8(DType::F32, {8});

/// `%y = relu(%x); %z = fused(%y) { ^(%a): %b = exp(%a); return(%b) }; return(%z)`, to be broken.
struct Sample {
  explicit Sample(const OpRegistry &registry) : trace(registry, "t") {
    x = trace.addArgument(f32x8, "x");
    relu = add("relu", {x}, "y");
    fused = add("fused", {trace.op(relu).result()}, "z");
    body = trace.op(fused).bodies().front();
    a = trace.addArgument(body, f32x8, "a");
    exp = add("exp", {a}, "b", body);
    inner = add("return", {trace.op(exp).result()}, "", body);
    ret = add("return", {trace.op(fused).result()});
  }

  /// A detached op; with one result unless `result` is empty.
  OpId create(llvm::StringRef name, llvm::ArrayRef<ValueId> operands, llvm::StringRef result = "") {
    OpInit init;
    init.spec = trace.registry().lookup(name);
    init.operands.assign(operands.begin(), operands.end());
    init.numBodies = init.spec->bodies == BodyKind::Region;
    if (!result.empty())
      init.resultTypes.push_back(f32x8);
    init.resultNames.push_back(result);
    return trace.createOp(std::move(init));
  }
  OpId add(llvm::StringRef name, llvm::ArrayRef<ValueId> operands, llvm::StringRef result = "",
           BodyId where = Trace::topBody()) {
    OpId op = create(name, operands, result);
    trace.append(where, op);
    return op;
  }
  ValueId result(OpId op) const { return trace.op(op).result(); }

  Trace trace;
  ValueId x, a;
  OpId relu, fused, exp, inner, ret;
  BodyId body;
};

/// A way to break the sample.
struct StructureCase {
  unsigned invariant;
  const char *name;
  const char *says;
  void (*damage)(Sample &);
  /// Each must be in the diagnostics.
  std::vector<const char *> messages;
};
std::ostream &operator<<(std::ostream &os, const StructureCase &c) {
  return os << c.says;
}

const std::vector<StructureCase> cases = {
    {1,
     "ErasedOp",
     "a body lists no op that was erased",
     [](Sample &s) {
       s.trace.setOps(Trace::topBody(), {s.relu, s.relu, s.fused, s.ret});
       s.trace.eraseOp(s.relu);
     },
     {"@t: error: the trace lists an op that does not exist, at #0",
      "'fused' op operand #0 ('%y') is no longer defined in the program"}},
    {1,
     "ErasedOpInBody",
     "nor does a nested body",
     [](Sample &s) {
       s.trace.setOps(s.body, {s.exp, s.inner, s.inner});
       s.trace.eraseOp(s.inner);
     },
     {"@t: %z: f32[8] = fused(%y) {...}: error: body of 'fused' op lists an op that does not "
      "exist, "
      "at #1"}},
    {2,
     "OpTwiceInABody",
     "an op stands in its body once",
     [](Sample &s) {
       s.trace.setOps(Trace::topBody(), {s.relu, s.relu, s.fused, s.ret});
     },
     {"@t: %y: f32[8] = relu(%x): error: 'relu' op stands in the program twice"}},
    {2,
     "OpInTwoBodies",
     "an op stands in one body",
     [](Sample &s) {
       s.trace.setOps(s.body, {s.relu, s.exp, s.inner});
     },
     {"'relu' op is listed in the trace but is linked to another body",
      "'relu' op stands in the program twice"}},
    {2,
     "OpInItself",
     "an op is in no body of its own",
     [](Sample &s) {
       s.trace.setOps(s.body, {s.fused, s.inner});
     },
     {"'fused' op is listed in the trace but is linked to another body",
      "'fused' op stands in the program twice"}},
    {5,
     "DeepNest",
     "bodies are nested at most 256 deep",
     [](Sample &s) {
       BodyId body = Trace::topBody();
       std::vector<OpId> path;
       s.trace.setOps(body, {});
       for (unsigned i = 0; i < 257; ++i) {
         path.push_back(s.add("fused", {}, "", body));
         if (i != 0)
           s.add("return", {}, "", body);
         body = s.trace.op(path.back()).bodies().front();
       }
       s.add("return", {}, "", body);
       s.add("return", {});
     },
     {"@t: fused() {...}: error: 'fused' op: bodies are nested more than 256 deep"}},
    {9,
     "NoSuchOperand",
     "an operand is a value",
     [](Sample &s) { s.trace.setOperand(s.fused, 0, ValueId(1000000)); },
     {"'fused' op operand #0 does not exist"}},
    {9,
     "UseBeforeDefinition",
     "an operand is defined before its use",
     [](Sample &s) {
       s.trace.setOps(Trace::topBody(), {s.fused, s.relu, s.ret});
     },
     {"@t: %z: f32[8] = fused(%y) {...}: error: 'fused' op operand #0 ('%y') is used before its "
      "definition",
      "@t: %y: f32[8] = relu(%x): note: '%y' of type f32[8] is defined here"}},
    {9,
     "UseOfItself",
     "an op does not use its own result",
     [](Sample &s) { s.trace.setOperand(s.relu, 0, s.result(s.relu)); },
     {"'relu' op operand #0 ('%y') is a result of the op itself"}},
    {9,
     "UseFromOutside",
     "a body sees its arguments only",
     [](Sample &s) { s.trace.setOperand(s.exp, 0, s.result(s.relu)); },
     {"'exp' op operand #0 ('%y') is defined in another body; a body must be given what it uses as "
      "arguments"}},
    {9,
     "UseFromInside",
     "nothing outside sees what is in a body",
     [](Sample &s) {
       s.trace.setOperands(s.ret, {s.result(s.exp), s.a});
     },
     {"'return' op operand #0 ('%b') is defined in another body",
      "'return' op operand #1 ('%a') is defined in another body"}},
    {9,
     "UseOfDetachedOp",
     "an operand is defined in the program",
     [](Sample &s) {
       s.trace.setOps(Trace::topBody(), {s.fused, s.ret});
     },
     {"'fused' op operand #0 ('%y') is no longer defined in the program"}},
    {9,
     "UseOfErasedArgument",
     "an argument that was erased is no value of the program",
     [](Sample &s) { s.trace.eraseArgument(Trace::topBody(), 0); },
     {"'relu' op operand #0 ('%x') is no longer defined in the program"}},
    {10,
     "NameTwice",
     "a name stands for one value in its body",
     [](Sample &s) { s.trace.setName(s.result(s.relu), "x"); },
     {"value name '%x' is used twice in one body", "@t: note: '%x' is an argument of type f32[8]"}},
    {10,
     "MalformedName",
     "a name can be read back",
     [](Sample &s) { s.trace.addArgument(f32x8, "8 x"); },
     {"@t: error: value name '%8 x' is malformed: expected a letter or '_'"}},
    {11,
     "OverflownDimension",
     "no dimension has overflowed",
     [](Sample &s) {
       TensorType type = f32x8;
       type.shape[0] = Dim::overflow();
       s.trace.setType(s.result(s.relu), type);
     },
     {"'relu' op result #0 ('%y') has type f32[<overflow>], whose dimension #0 has overflowed"}},
    {11,
     "OverflownStride",
     "no stride has overflowed",
     [](Sample &s) {
       s.trace.setType(s.x, TensorType(DType::F32, {8}, {Dim::overflow()}, Device::host()));
     },
     {"@t: error: argument '%x' has type f32[8; <overflow>], whose stride #0 has overflowed"}},
    {11,
     "NegativeDimension",
     "no dimension is negative",
     [](Sample &s) {
       s.trace.setType(s.x, TensorType(DType::F32, {8, -1}));
     },
     {"argument '%x' has type f32[8, -1", "whose dimension #1 is negative"}},
    {11,
     "NegativeStride",
     "no stride is negative",
     [](Sample &s) { s.trace.setType(s.x, TensorType(DType::F32, {8}, {-1}, Device::host())); },
     {"argument '%x' has type f32[8; -1], whose stride #0 is negative"}},
    {11,
     "MissingStride",
     "there is a stride for each dimension",
     [](Sample &s) {
       TensorType type(DType::F32, {8, 8});
       type.strides.pop_back();
       s.trace.setType(s.x, type);
     },
     {"which has 2 dimensions but 1 strides"}},
    {11,
     "TooManyElements",
     "elements can be counted, whatever their strides",
     [](Sample &s) {
       Dim big(int64_t(1) << 32);
       s.trace.setType(s.x, TensorType(DType::F32, {big, big}, {0, 0}, Device::host()));
     },
     {"whose size in bytes overflows"}},
    {11,
     "TooFarApart",
     "the extent in bytes can be counted, whatever the number of elements",
     [](Sample &s) {
       Dim far(int64_t(1) << 61);
       s.trace.setType(s.x, TensorType(DType::F32, {2}, {far}, Device::host()));
     },
     {"whose size in bytes overflows"}},
    {12,
     "UnregisteredType",
     "an opaque type is registered",
     [](Sample &s) {
       s.trace.setType(s.x, OpaqueType{"mylib.handle", ""});
     },
     {"argument '%x' has type !mylib.handle, which is not registered"}},
    {12,
     "RefusedParameters",
     "an opaque type accepts its parameters",
     [](Sample &s) {
       s.trace.setType(s.x, OpaqueType{"mylib.page", "13"});
     },
     {"has type !mylib.page<\"13\">, whose parameters are refused: expected a power of two"}},
    {13,
     "OtherRegistry",
     "an op is of the registry of its trace",
     [](Sample &s) {
       static const OpSpec foreign = [] {
         OpSpec spec;
         spec.name = "relu";
         spec.operands = {{"x"}};
         spec.results = {"out"};
         return spec;
       }();
       OpInit init;
       init.spec = &foreign;
       init.operands = {s.x};
       init.resultTypes = {f32x8};
       OpId op = s.trace.createOp(std::move(init));
       s.trace.setOps(Trace::topBody(), {op, s.relu, s.fused, s.ret});
     },
     {"'relu' op is not of the registry of the trace"}},
    {14,
     "OperandsDropped",
     "operands that were dropped are missed",
     [](Sample &s) { s.trace.setOperands(s.relu, {}); },
     {"'relu' op expects 1 operand, got 0"}},
    {16,
     "AttributeTwice",
     "an attribute is given once",
     [](Sample &s) {
       OpInit init;
       init.spec = s.trace.registry().lookup("softmax");
       init.operands = {s.x};
       init.resultTypes = {f32x8};
       init.attributes = {{"dim", 0}, {"dim", 0}};
       OpId op = s.trace.createOp(std::move(init));
       s.trace.setOps(Trace::topBody(), {op, s.relu, s.fused, s.ret});
     },
     {"'softmax' op has attribute 'dim' twice"}},
    {16,
     "OverflownAttribute",
     "no integer in an attribute has overflowed",
     [](Sample &s) {
       OpId op = s.create("flip", {s.x}, "w");
       s.trace.setAttribute(op, "dims", Attribute::List{Dim::overflow()});
       s.trace.setOps(Trace::topBody(), {op, s.relu, s.fused, s.ret});
     },
     {"'flip' op attribute 'dims' has an integer that overflowed"}},
    {20,
     "OpenEndedOp",
     "an op without inference has fresh results all the same",
     [](Sample &s) {
       OpInit init;
       init.spec = s.trace.registry().lookup("mylib.make");
       init.resultTypes = {TensorType(DType::F32, {8}, {0}, Device::host())};
       OpId op = s.trace.createOp(std::move(init));
       s.trace.setOps(Trace::topBody(), {op, s.relu, s.fused, s.ret});
     },
     {"'mylib.make' op result #0 ('%0') has type f32[8; 0], whose elements overlap"}},
};

class VerifierStructureTest : public VerifierTestBase,
                              public testing::TestWithParam<StructureCase> {
public:
  VerifierStructureTest() {
    llvm::cantFail(registry.registerType({"mylib.page", "", [](llvm::StringRef parameters) {
                                            return parameters == "13"
                                                       ? makeError("expected a power of two")
                                                       : llvm::Error::success();
                                          }}));
    OpSpec make;
    make.name = "mylib.make";
    make.results = {"out"};
    llvm::cantFail(registry.registerOp(std::move(make)));
  }
};

/// The sample is sound; damaged, it is refused.
TEST_P(VerifierStructureTest, Invariant) {
  Sample sample(registry);
  EXPECT_EQ(diagnose(sample.trace), "");
  GetParam().damage(sample);
  std::string text = diagnose(sample.trace);
  for (const char *message : GetParam().messages)
    EXPECT_NE(text.find(message), std::string::npos) << "expected " << message << "\nin:\n" << text;
}

INSTANTIATE_TEST_SUITE_P(Structure, VerifierStructureTest, testing::ValuesIn(cases),
                         nameOf<StructureCase>);

/// What stands next to a fault of a type is sound: the sound twins of the type cases.
TEST_F(VerifierStructureTest, SoundTypes) {
  Trace trace(registry, "t");
  Dim big(int64_t(1) << 40), batch = Dim::symbol("B");
  trace.addArgument(TensorType(DType::F32, {big, 0, big}, {1, 1, 1}, Device::host()), "empty");
  trace.addArgument(TensorType(DType::U8, {Dim((int64_t(1) << 62))}), "large");
  trace.addArgument(TensorType(DType::F32, {8, 8}, {0, 1}, Device::host()), "expanded");
  trace.addArgument(TensorType(DType::F32, {batch, 8}), "symbolic");
  trace.addArgument(TensorType(DType::F32, {}), "zeroDimensional");
  trace.addArgument(OpaqueType{"mylib.page", "16"}, "page");
  OpInit init;
  init.spec = registry.lookup("return");
  trace.append(Trace::topBody(), trace.createOp(std::move(init)));
  EXPECT_EQ(diagnose(trace), "");
}

/// An op that is in no body is not part of the program, whatever it holds.
TEST_F(VerifierStructureTest, DetachedOpsAreIgnored) {
  Sample sample(registry);
  sample.create("mm", {ValueId(77), sample.result(sample.exp)}, "y");
  OpId loose = sample.create("fused", {}, "w");
  sample.add("relu", {ValueId(99)}, "w", sample.trace.op(loose).bodies().front());
  EXPECT_EQ(diagnose(sample.trace), "");
}

/// A clone of a sound trace is sound, opaque ops included.
TEST_F(VerifierStructureTest, ClonesAreSound) {
  Sample sample(registry);
  OpInit init;
  init.spec = sample.trace.opaqueSpec("aten.some_op");
  init.operands = {sample.x, ValueId()};
  init.resultTypes = {TensorType(DType::F32, {8}, {0}, Device::host())};
  OpId op = sample.trace.createOp(std::move(init));
  sample.trace.setOps(Trace::topBody(), {op, sample.relu, sample.fused, sample.ret});
  EXPECT_EQ(diagnose(sample.trace), "");
  EXPECT_EQ(diagnose(sample.trace.clone()), "");
}

/// Equal names are found, and reported in program order, in whatever order names were made.
TEST_F(VerifierStructureTest, NamesMadeInAnyOrder) {
  for (unsigned runs : {1, 2, 7, 255, 256, 1000}) {
    Sample sample(registry);
    std::vector<OpId> order;
    for (unsigned i = 0; i < 1000; ++i)
      order.push_back(sample.create("relu", {sample.x}, "v" + std::to_string(i)));
    sample.trace.setName(sample.result(order[10]), "v20");
    sample.trace.setName(sample.result(order[900]), "v30");
    // `runs` descending steps: op i * runs + k comes before op j * runs + k + 1.
    std::vector<OpId> shuffled;
    for (unsigned k = 0; k < runs; ++k)
      for (unsigned i = k; i < order.size(); i += runs)
        shuffled.push_back(order[i]);
    shuffled.push_back(sample.ret);
    sample.trace.setOps(Trace::topBody(), shuffled);
    sample.trace.setOperands(sample.ret, {});

    DiagnosticList diagnostics;
    verify(sample.trace, diagnostics);
    std::vector<OpId> expected;
    for (auto [a, b] : {std::pair(order[10], order[20]), std::pair(order[900], order[30])})
      expected.push_back(llvm::find(shuffled, a) < llvm::find(shuffled, b) ? b : a);
    llvm::sort(expected,
               [&](OpId a, OpId b) { return llvm::find(shuffled, a) < llvm::find(shuffled, b); });
    ASSERT_EQ(diagnostics.diagnostics().size(), 2u) << runs;
    for (unsigned i = 0; i < 2; ++i)
      EXPECT_EQ(diagnostics.diagnostics()[i].location, locationOf(sample.trace, expected[i]));
  }
}

/// Past its limit the list counts errors and keeps no more.
TEST_F(VerifierStructureTest, ManyErrorsAreCounted) {
  Sample sample(registry);
  std::vector<OpId> order;
  for (unsigned i = 0; i < 1000; ++i)
    order.push_back(sample.create("relu", {ValueId(1000000)}, "y"));
  order.push_back(sample.ret);
  sample.trace.setOps(Trace::topBody(), order);
  DiagnosticList diagnostics(10);
  verify(sample.trace, diagnostics);
  EXPECT_EQ(diagnostics.diagnostics().size(), 10u);
  EXPECT_GE(diagnostics.numErrors(), 1000u);
}

/// Marks on the wrong side of a pair are no saved links.
TEST_F(VerifierStructureTest, SavedOnTheWrongSide) {
  TracePair pair = llvm::cantFail(parsePair(R"(pair @p {
  forward @f(%x: f32[8]) {
    return(%x, %x saved #0)
  }
  backward @b(%a: f32[8] saved #0) {
    return(%a)
  }
})",
                                            "t.trace", registry));
  EXPECT_FALSE(bool(verify(pair)));
  TracePair swapped(std::move(pair.backward()), std::move(pair.forward()));
  std::string text = llvm::toString(verify(swapped));
  EXPECT_NE(
      text.find("@b: error: argument #0 ('%a') of the forward is marked as saved #0; only the "
                "backward has saved arguments"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("error: 'return' op operand #1 of the backward is marked as saved #0; only "
                      "the forward saves"),
            std::string::npos)
      << text;
}

/// Both ends of a saved link exist once.
TEST_F(VerifierStructureTest, SavedTwice) {
  TracePair pair = llvm::cantFail(parsePair(R"(pair @p {
  forward @f(%x: f32[8]) {
    return(%x saved #0, %x)
  }
  backward @b(%a: f32[8] saved #0, %g: f32[8]) {
    return(%a)
  }
})",
                                            "t.trace", registry));
  pair.markSavedReturn(1, SavedId(0));
  pair.markSavedArgument(1, SavedId(0));
  std::string text = llvm::toString(verify(pair));
  EXPECT_NE(text.find("operand #1 ('%x') is saved as #0, as operand #0 is"), std::string::npos)
      << text;
  EXPECT_NE(text.find("argument #1 ('%g') is saved #0, as argument #0 is"), std::string::npos)
      << text;
}

} // namespace

std::vector<unsigned> rondo::test::invariantsOfStructureCases() {
  return invariantsOf(cases);
}
