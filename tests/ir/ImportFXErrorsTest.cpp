//===- ImportFXErrorsTest.cpp - Files that are no fx-aten-1 -----------------===//

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/ImportFX.h"

#include "support/FXText.h"

#include "llvm/ADT/SmallVector.h"

#include <gtest/gtest.h>

using namespace rondo;
using namespace rondo::test;

namespace {

class ImportFXErrorsTest : public testing::Test {
protected:
  ImportFXErrorsTest() { llvm::cantFail(registerCoreOps(registry_)); }

  static std::string withoutFile(const Location &location) {
    EXPECT_EQ(location.file, "f");
    return location.str().substr(location.str() == "f" ? 1 : 2);
  }

  /// The errors and notes, without the name of the file, a line each.
  std::string errorsOf(const std::string &file) {
    llvm::Expected<TracePair> pair = importFX(file, "f", registry_);
    if (pair)
      return "none";
    std::string text;
    llvm::handleAllErrors(pair.takeError(), [&](const DiagnosticError &error) {
      for (const Diagnostic &diagnostic : error.diagnostics()) {
        EXPECT_TRUE(diagnostic.location.isKnown()) << diagnostic.message;
        text += withoutFile(diagnostic.location) + ": " + diagnostic.message + "\n";
        for (const Diagnostic &note : diagnostic.notes)
          text += "  " + withoutFile(note.location) + ": " + note.message + "\n";
      }
    });
    return text;
  }

  OpRegistry registry_;
};

/// A forward that is right.
FXText forwardGraph() {
  FXText graph("forward");
  graph.input("x", "float32[2,3]", R"("role":"parameter","module_name":"x")");
  graph.input("g", "Generator");
  graph.node("y", "aten.relu.default", "%x", "float32[2,3]");
  graph.node("t", "aten.unbind.int", "%x", "(float32[3], float32[3])");
  graph.node("e", "_operator.getitem", "%t,1", "float32[3]");
  return graph.outputs("%e, %y").roles("", "0", "1");
}

FXText backwardGraph() {
  FXText graph("backward");
  graph.input("y", "float32[2,3]");
  graph.input("tangents_1", "float32[3]");
  graph.node("d", "aten.neg.default", "%y", "float32[2,3]");
  return graph.outputs("%d");
}

/// A text that is right but for `from`, which occurs once at least and becomes `to` where it is
/// first.
std::string damaged(std::string text, const std::string &from, const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

// The graphs that the cases below damage are right themselves.
TEST_F(ImportFXErrorsTest, UndamagedGraphs) {
  EXPECT_EQ(errorsOf(fxProgram(forwardGraph(), backwardGraph())), "none");
}

// What is no JSON, or not an object of graphs of this format.
TEST_F(ImportFXErrorsTest, Envelope) {
  EXPECT_EQ(errorsOf("").substr(0, 5), "1:1: ");
  EXPECT_EQ(errorsOf("[1,\n2").substr(0, 2), "2:");
  EXPECT_EQ(errorsOf("[]"), ": expected an object, got an array\n");
  EXPECT_EQ(errorsOf("{}"), ": missing key 'forward'\n");
  EXPECT_EQ(errorsOf(R"({"forward":null})"), "/forward: expected an object, got null\n");
  EXPECT_EQ(errorsOf(R"({"forward":{}})"), "/forward: missing key 'format'\n");
  std::string good = fxProgram(forwardGraph(), backwardGraph());
  EXPECT_EQ(errorsOf(damaged(good, "fx-aten-1", "fx-aten-2")),
            "/forward/format: unsupported format 'fx-aten-2', expected 'fx-aten-1'\n");
  EXPECT_EQ(errorsOf(damaged(good, R"("fx-aten-1")", "1")),
            "/forward/format: expected a string, got an integer\n");
  EXPECT_EQ(errorsOf(damaged(good, R"("kind":"forward")", R"("kind":"backward")")),
            "/forward/kind: expected the kind 'forward', got 'backward'\n");
  EXPECT_EQ(errorsOf(damaged(good, R"("kind":"backward")", R"("kind":"forward")")),
            "/backward/kind: expected the kind 'backward', got 'forward'\n");
  EXPECT_EQ(errorsOf(damaged(good, R"("inputs":[)", R"("input":[)")),
            "/forward: missing key 'inputs'\n");
  EXPECT_EQ(errorsOf(damaged(good, R"("outputs_are":)", R"("outputs_were":)")),
            "/forward: missing key 'outputs_are'\n");
  EXPECT_EQ(errorsOf(damaged(good, R"("model":"test")", R"("model":1)")),
            "/model: expected a string, got an integer\n");
}

// Inputs: types, roles, names.
TEST_F(ImportFXErrorsTest, Inputs) {
  struct {
    const char *from, *to, *errors;
  } const cases[] = {
      {R"({"name":"x",)", R"({)",
       "/forward/inputs/0: missing key 'name'\n"
       "/forward/nodes/0/args/0/ref: unknown value 'x'\n"
       "/forward/nodes/1/args/0/ref: unknown value 'x'\n"},
      {R"("name":"x")", R"("name":"")",
       "/forward/inputs/0/name: a name may not be empty\n"
       "/forward/nodes/0/args/0/ref: unknown value 'x'\n"
       "/forward/nodes/1/args/0/ref: unknown value 'x'\n"},
      {R"("name":"g")", R"("name":"x")",
       "/forward/inputs/1/name: 'x' is defined twice\n  /forward/inputs/0: first defined here\n"},
      {R"("name":"y")", R"("name":"x")",
       "/forward/nodes/0/name: 'x' is defined twice\n  /forward/inputs/0: first defined here\n"
       "/forward/outputs/1/ref: unknown value 'y'\n"},
      {R"("kind":"tensor")", R"("kind":"tensors")",
       "/forward/inputs/0/kind: unsupported kind 'tensors' of an input\n"},
      {R"("kind":"tensor")", R"("kind":"tuple","elements":[])",
       "/forward/inputs/0/kind: unsupported kind 'tuple' of an input\n"},
      {R"("kind":"tensor",)", "", "/forward/inputs/0: missing key 'kind'\n"},
      {R"("shape":[2,3])", R"("shape":[2,-3])", ""},
      {R"("shape":[2,3])", R"("shape":[2,"s0"])",
       "/forward/inputs/0/shape/1: expected an integer, got a string\n"},
      {R"("shape":[2,3])", R"("shape":[2,99999999999999999999])", ""},
      {R"("shape":[2,3])", R"("shape":[2.5,3])",
       "/forward/inputs/0/shape/0: expected an integer, got a floating-point number\n"},
      {R"("shape":[2,3])", R"("shape":6)",
       "/forward/inputs/0/shape: expected an array, got an integer\n"},
      {R"("shape":[2,3])", R"("shape":[2,3,1])",
       "/forward/inputs/0/stride: has 2 strides for a shape of rank 3\n"},
      {R"("stride":[3,1])", R"("stride":[3,-1])", ""},
      {R"("stride":[3,1],)", "", "/forward/inputs/0: missing key 'stride'\n"},
      {R"("shape":[2,3])", R"("shape":[4611686018427387904,4])",
       "/forward/inputs/0: tensor is too large: its size does not fit 64 bits\n"},
      {R"("stride":[3,1])", R"("stride":[9223372036854775807,9223372036854775807])",
       "/forward/inputs/0: tensor is too large: its size does not fit 64 bits\n"},
      {R"("dtype":"float32")", R"("dtype":"float23")",
       "/forward/inputs/0/dtype: unsupported dtype 'float23' (did you mean 'float16'?)\n"},
      {R"("dtype":"float32")", R"("dtype":32)",
       "/forward/inputs/0/dtype: expected a string, got an integer\n"},
      {R"("device":"cuda")", R"("device":0)",
       "/forward/inputs/0/device: expected a string, got an integer\n"},
      {R"("dtype":"float32")", R"("dtype":"complex64")",
       "/forward/inputs/0/dtype: unsupported dtype 'complex64'\n"},
      {R"("device":"cuda")", R"("device":"cuda:70000")",
       "/forward/inputs/0/device: unsupported device 'cuda:70000', expected 'cpu', 'cuda' or "
       "'cuda:N'\n"},
      {R"("device":"cuda")", R"("device":"meta")",
       "/forward/inputs/0/device: unsupported device 'meta', expected 'cpu', 'cuda' or 'cuda:N'\n"},
      {R"("role":"parameter")", R"("role":"parameters")",
       "/forward/inputs/0/role: expected a role, got 'parameters' (did you mean 'parameter'?)\n"},
      {R"("module_name":"x")", R"("module_name":["x"])",
       "/forward/inputs/0/module_name: expected a string, got an array\n"},
      {R"({"name":"g","kind":"Generator"})", "7",
       "/forward/inputs/1: expected an object, got an integer\n"},
      {R"("kind":"Generator")", R"("kind":"Generator","device":"tpu")",
       "/forward/inputs/1/device: unsupported device 'tpu', expected 'cpu', 'cuda' or 'cuda:N'\n"},
  };
  std::string good = fxProgram(forwardGraph(), backwardGraph());
  for (const auto &c : cases) {
    std::string errors = errorsOf(damaged(good, c.from, c.to));
    if (*c.errors) {
      EXPECT_EQ(errors, c.errors) << c.to;
    } else {
      EXPECT_EQ(errors.substr(0, 17), "/forward/inputs/0") << c.to << errors;
    }
  }
}

// Nodes: op, results, elements of tuples.
TEST_F(ImportFXErrorsTest, Nodes) {
  struct {
    const char *from, *to, *errors;
  } const cases[] = {
      {R"("op":"aten.relu.default",)", "", "/forward/nodes/0: missing key 'op'\n"},
      {R"("op":"aten.relu.default")", R"("op":"")",
       "/forward/nodes/0/op: the name of an op may not be empty\n"},
      {R"("args":[{"ref":"x"}],)", "", "/forward/nodes/0: missing key 'args'\n"},
      {R"("args":[{"ref":"x"}])", R"("args":{})",
       "/forward/nodes/0/args: expected an array, got an object\n"},
      {R"("kwargs":{},)", "", "/forward/nodes/0: missing key 'kwargs'\n"},
      {R"("kwargs":{})", R"("kwargs":[])",
       "/forward/nodes/0/kwargs: expected an object, got an array\n"},
      {R"("nodes":[)", R"("nodes":[7,)", "/forward/nodes/0: expected an object, got an integer\n"},
      {R"("kwargs":{})", R"("kwargs":{"a":{"ref":"z"}})",
       "/forward/nodes/0/kwargs/a/ref: unknown value 'z'\n"},
      {R"("kwargs":{})", R"("kwargs":{"a b":1})",
       "/forward/nodes/0/kwargs/a b: malformed name of a keyword argument\n"},
      {R"("result":{"kind":"tensor")", R"("result":{"kind":"Generator")",
       "/forward/nodes/0/result/kind: unsupported kind 'Generator' of a result\n"},
      {R"("result":{"kind":"tuple")", R"("result":{"kind":"list")",
       "/forward/nodes/1/result/kind: unsupported kind 'list' of a result\n"},
      {R"("result":{"kind":"tuple","elements":[)", R"("result":{"kind":"tuple","element":[)",
       "/forward/nodes/1/result: missing key 'elements'\n"},
      {R"("elements":[{"kind":"tensor")",
       R"("elements":[{"kind":"tuple","elements":[{"kind":"tuple"}]},{"kind":"tensor")",
       "/forward/nodes/1/result/elements/0/elements/0/kind: unsupported kind 'tuple' of an element "
       "of a "
       "tuple\n"},
      {R"([{"ref":"t"},1])", R"([{"ref":"t"},2])",
       "/forward/nodes/2/args/1: 't' has 2 elements, no element 2\n  /forward/nodes/1: defined "
       "here\n"},
      {R"([{"ref":"t"},1])", R"([{"ref":"t"},-3])",
       "/forward/nodes/2/args/1: 't' has 2 elements, no element -3\n  /forward/nodes/1: defined "
       "here\n"},
      {R"([{"ref":"t"},1])", R"([{"ref":"t"}])",
       "/forward/nodes/2: '_operator.getitem' expects a value and an integer\n"},
      {R"([{"ref":"t"},1])", R"([{"ref":"t"},"1"])",
       "/forward/nodes/2: '_operator.getitem' expects a value and an integer\n"},
      {R"([{"ref":"t"},1])", R"([{"ref":"y"},1])",
       "/forward/nodes/2/args/0: 'y' is no tuple\n  /forward/nodes/0: defined here\n"},
      {R"("elements":[{"kind":"tensor","shape":[3],"stride":[1],"dtype":"float32","device":"cuda"},{"kind":"tensor","shape":[3])",
       R"("elements":[{"kind":"tensor","shape":[3],"stride":[1],"dtype":"float32","device":"cuda"},{"kind":"tensor","shape":[4])",
       "/forward/nodes/2: result is recorded as f32[3]@cuda:0, but element 1 of 't' as "
       "f32[4]@cuda:0\n  /forward/nodes/1: defined here\n"},
      {R"(},{"kind":"tensor","shape":[3],"stride":[1],"dtype":"float32","device":"cuda"}]})",
       R"(},{"kind":"unused"}]})",
       "/forward/nodes/2: result is recorded as f32[3]@cuda:0, but element 1 of 't' as unused\n"
       "  /forward/nodes/1: defined here\n"},
      {R"(},{"kind":"tensor","shape":[3],"stride":[1],"dtype":"float32","device":"cuda"}]})",
       R"(},{"kind":"int","value":"1"}]})",
       "/forward/nodes/1/result/elements/1/value: expected an integer, got a string\n"},
      {R"(},{"kind":"tensor","shape":[3],"stride":[1],"dtype":"float32","device":"cuda"}]})",
       R"(},{"kind":"bool","value":1}]})",
       "/forward/nodes/1/result/elements/1/value: expected a boolean, got an integer\n"},
      {R"(},{"kind":"tensor","shape":[3],"stride":[1],"dtype":"float32","device":"cuda"}]})",
       R"(},{"kind":"float","value":true}]})",
       "/forward/nodes/1/result/elements/1/value: expected a number, got a boolean\n"},
  };
  std::string good = fxProgram(forwardGraph(), backwardGraph());
  for (const auto &c : cases)
    EXPECT_EQ(errorsOf(damaged(good, c.from, c.to)), c.errors) << c.to;
}

// Arguments: references and the other tagged forms.
TEST_F(ImportFXErrorsTest, Arguments) {
  struct {
    const char *args, *errors;
  } const cases[] = {
      {R"({"ref":"z"})", "/ref: unknown value 'z'\n"},
      {R"({"ref":1})", "/ref: expected a string, got an integer\n"},
      {R"({"ref":"y"})",
       "/ref: 'y' is used before it is defined\n  /forward/nodes/0: defined here\n"},
      {R"({"ref":"e"})",
       "/ref: 'e' is used before it is defined\n  /forward/nodes/2: defined here\n"},
      {"{}", ": expected an object with one key, got 0\n"},
      {R"({"ref":"x","dtype":"int8"})", ": expected an object with one key, got 2\n"},
      {R"({"reference":"x"})", "/reference: unknown kind of argument 'reference'\n"},
      {R"({"refs":"x"})", "/refs: unknown kind of argument 'refs' (did you mean 'ref'?)\n"},
      {R"({"dtype":"int9"})", "/dtype: unsupported dtype 'int9' (did you mean 'int8'?)\n"},
      {R"({"device":"gpu"})",
       "/device: unsupported device 'gpu', expected 'cpu', 'cuda' or 'cuda:N'\n"},
      {R"({"repr":null})", "/repr: expected a string, got null\n"},
      {R"({"float":1.5})",
       "/float: expected 'inf', '-inf' or 'nan', got a floating-point number\n"},
      {"[[{\"ref\":\"z\"}]]", "/0/0/ref: unknown value 'z'\n"},
  };
  std::string good = fxProgram(forwardGraph(), backwardGraph());
  for (const auto &c : cases)
    EXPECT_EQ(errorsOf(damaged(good, R"([{"ref":"x"}])", std::string("[") + c.args + "]")),
              std::string("/forward/nodes/0/args/0") + c.errors)
        << c.args;
  std::string huge = errorsOf(damaged(good, R"([{"ref":"x"}])", "[99999999999999999999]"));
  EXPECT_EQ(huge.substr(0, 25), "/forward/nodes/0/args/0: ") << huge;
  std::string word = errorsOf(damaged(good, R"([{"ref":"x"}])", R"([{"float":"infinity"}])"));
  EXPECT_EQ(word.substr(0, 31), "/forward/nodes/0/args/0/float: ") << word;
  std::string deep =
      errorsOf(damaged(good, R"([{"ref":"x"}])", std::string(30, '[') + std::string(30, ']')));
  EXPECT_NE(deep.find(": lists are nested more than 16 deep\n"), std::string::npos) << deep;
  EXPECT_EQ(errorsOf(damaged(good, R"({"ref":"t"},1)", R"({"ref":"x"},1)")),
            "/forward/nodes/2/args/0: 'x' is no tuple\n  /forward/inputs/0: defined here\n");
  FXText graph = forwardGraph();
  graph.node("bad", "aten.neg.default", "%t", "float32[3]");
  EXPECT_EQ(errorsOf(fxProgram(graph, backwardGraph())),
            "/forward/nodes/3/args/0/ref: 't' is a tuple, expected an element of it\n"
            "  /forward/nodes/1: defined here\n");
}

// Outputs and their roles.
TEST_F(ImportFXErrorsTest, Outputs) {
  struct {
    const char *outputs, *mutated, *user, *saved, *errors;
  } const cases[] = {
      {"%e, 1", "", "0", "1", "/forward/outputs/1: expected a value or null\n"},
      {"%e, {\"dtype\":\"int8\"}", "", "0", "1", "/forward/outputs/1: expected a value or null\n"},
      {"%e, %t", "", "0", "1",
       "/forward/outputs/1/ref: 't' is a tuple, expected an element of it\n"
       "  /forward/nodes/1: defined here\n"},
      {"%e, null", "", "0", "1", "/forward/outputs/1: null cannot be saved\n"},
      {"null, %y", "x", "", "1", "/forward/outputs/0: a mutated input needs a new value\n"},
      {"%e, %y", "", "0", "2",
       "/forward/outputs_are/saved_for_backward/0: there is no output 2 among 2\n"
       "/forward/outputs/1: output has no role in 'outputs_are'\n"},
      {"%e, %y", "", "0, 1", "1",
       "/forward/outputs_are/saved_for_backward/0: output 1 has a role already\n"},
      {"%e, %y", "x", "0", "1", "/forward/outputs_are/user/0: output 0 has a role already\n"},
      {"%e, %y", "", "0", "", "/forward/outputs/1: output has no role in 'outputs_are'\n"},
      {"%e, %y", "", "-1", "1", ""},
      {"%e, %y", "y", "", "1",
       "/forward/outputs_are/mutated_inputs/0: 'y' is no input\n"
       "/forward/outputs/0: output has no role in 'outputs_are'\n"},
      {"%e, %y", "g", "", "1",
       "/forward/outputs_are/mutated_inputs/0: 'g' is no tensor\n"
       "  /forward/inputs/1: defined here\n"
       "/forward/outputs/0: output has no role in 'outputs_are'\n"},
      {"%e, %y, %y", "x, x", "1", "2",
       "/forward/outputs_are/mutated_inputs/1: 'x' is named twice\n"},
      {"", "x", "", "",
       "/forward/outputs_are/mutated_inputs: there are fewer outputs (0) than mutated inputs\n"},
  };
  for (const auto &c : cases) {
    FXText graph = forwardGraph();
    graph.outputs(c.outputs).roles(c.mutated, c.user, c.saved);
    std::string errors = errorsOf(fxProgram(graph, backwardGraph()));
    if (*c.errors) {
      EXPECT_EQ(errors, c.errors) << c.outputs;
    } else {
      EXPECT_EQ(errors.substr(0, 28), "/forward/outputs_are/user/0:") << errors;
    }
  }
  std::string good = fxProgram(forwardGraph(), backwardGraph());
  EXPECT_EQ(errorsOf(damaged(good, R"("user":[0])", R"("users":[0])")),
            "/forward/outputs_are/users: unknown key 'users' (did you mean 'user'?)\n"
            "/forward/outputs_are: missing key 'user'\n"
            "/forward/outputs/0: output has no role in 'outputs_are'\n");
  EXPECT_EQ(errorsOf(damaged(good, R"("mutated_inputs":[])", R"("mutated_inputs":"x")")),
            "/forward/outputs_are/mutated_inputs: expected an array, got a string\n");
  EXPECT_EQ(errorsOf(damaged(good, R"("outputs_are":{)", R"("outputs_are":7,"":{)")),
            "/forward/outputs_are: expected an object, got an integer\n");
  EXPECT_EQ(errorsOf(damaged(good, R"("mutated_inputs":[])", R"("mutated_inputs":[7])")),
            "/forward/outputs_are/mutated_inputs/0: expected a string, got an integer\n");
  EXPECT_EQ(errorsOf(damaged(good, R"("user":[0])", R"("user":0)")),
            "/forward/outputs_are/user: expected an array, got an integer\n"
            "/forward/outputs/0: output has no role in 'outputs_are'\n");
}

// Forward and backward that do not fit.
TEST_F(ImportFXErrorsTest, Links) {
  EXPECT_EQ(errorsOf(fxProgram(forwardGraph())),
            "/forward/outputs/1: saved for a backward, but there is none\n");

  FXText fewInputs("backward");
  EXPECT_EQ(errorsOf(fxProgram(forwardGraph(), fewInputs.outputs("null"))),
            "/forward/outputs/1: saved for a backward that has only 0 inputs\n");

  FXText wrongType("backward");
  wrongType.input("y", "float32[3,2]");
  EXPECT_EQ(errorsOf(fxProgram(forwardGraph(), wrongType.outputs("null"))),
            "/backward/inputs/0: input 'y' is f32[3, 2]@cuda:0, but the forward saves "
            "f32[2, 3]@cuda:0 for it\n  /forward/outputs/1: 'y' saved here\n");

  FXText wrongKind("backward");
  wrongKind.input("y", "Generator");
  EXPECT_EQ(errorsOf(fxProgram(forwardGraph(), wrongKind.outputs("null"))),
            "/backward/inputs/0: input 'y' is a generator, but the forward saves "
            "f32[2, 3]@cuda:0 for it\n  /forward/outputs/1: 'y' saved here\n");

  for (auto [name, error] :
       {std::pair("bwd_rng_state_3", "the forward has no generator input 'fwd_rng_state_3'"),
        std::pair("state", "a generator input is named 'bwd_rng_state_N'")}) {
    FXText unknownState = backwardGraph();
    unknownState.input(name, "Generator");
    EXPECT_EQ(errorsOf(fxProgram(forwardGraph(), unknownState)),
              std::string("/backward/inputs/2: ") + error + "\n");
  }

  FXText gradients = backwardGraph();
  EXPECT_EQ(errorsOf(fxProgram(forwardGraph(), gradients.outputs("%d, %d"))),
            "/backward/outputs: has 2 gradients for 1 inputs of the forward\n");
}

// Several errors come at once, those of both graphs, and what depends on a fault says nothing.
TEST_F(ImportFXErrorsTest, SeveralAtOnce) {
  FXText forward("forward"), backward("backward");
  forward.input("x", "float99[2]");
  forward.node("y", "aten.neg.default", "%x", "float32[2]");
  forward.node("z", "aten.add.Tensor", "%y, %nothing", "float32[2]");
  forward.node("t", "aten.unbind.int", "%z", "(float32[2,2;1])");
  forward.node("e", "_operator.getitem", "%t, 0", "float32[2]");
  forward.outputs("%e").roles("", "0", "");
  backward.node("g", "aten.neg.default", "%g", "float32[2]");
  backward.outputs("%g");
  EXPECT_EQ(errorsOf(fxProgram(forward, backward)),
            "/forward/inputs/0/dtype: unsupported dtype 'float99' (did you mean 'float16'?)\n"
            "/forward/nodes/1/args/1/ref: unknown value 'nothing'\n"
            "/forward/nodes/2/result/elements/0/stride: has 1 strides for a shape of rank 2\n"
            "/backward/nodes/0/args/0/ref: 'g' is used before it is defined\n"
            "  /backward/nodes/0: defined here\n");
}

// A result that does not follow from the arguments is found by the verifier, at the node.
TEST_F(ImportFXErrorsTest, VerifierSpeaksOfNodes) {
  FXText graph("forward");
  graph.input("x", "float32[2,3]");
  graph.node("y", "aten.mm.default", "%x, %x", "float32[2,3]");
  graph.node("z", "aten.relu.default", "%x", "float32[2,4]");
  graph.outputs("%y, %z");
  std::string errors = errorsOf(fxProgram(graph));
  EXPECT_EQ(errors.substr(0, 30), "/forward/nodes/0: 'mm' op expe") << errors;
  EXPECT_NE(errors.find("\n/forward/nodes/1: 'relu' op result #0 ('%z') has type "
                        "f32[2, 4]@cuda:0, expected f32[2, 3]@cuda:0\n"),
            std::string::npos)
      << errors;
}

// A result that is recorded as something else than a tensor, of a view of a mutated input.
TEST_F(ImportFXErrorsTest, ViewRecordedAsScalar) {
  FXText graph("forward");
  graph.input("x", "float32[3]");
  graph.node("v", "aten.select.int", "%x, 0, 0", "int");
  graph.node("new", "aten.neg.default", "%x", "float32[3]");
  graph.outputs("%new, %v").roles("x", "1", "");
  std::string expected = "/forward/nodes/0: 'select' op result #0 ('%v') has type i64, expected "
                         "f32[]@cuda:0\n";
  EXPECT_EQ(errorsOf(fxProgram(graph)).substr(0, expected.size()), expected);
}

// What a result may be besides tensors.
TEST_F(ImportFXErrorsTest, OtherResults) {
  FXText graph = forwardGraph();
  for (const char *type : {"int", "int=-3", "float", "float=2.5", "bool", "bool=true", "None"})
    graph.node(std::string("r") + type, "mylib.f.default", "", type);
  std::string text = fxProgram(graph, backwardGraph());
  EXPECT_EQ(errorsOf(text), "none");
  EXPECT_EQ(errorsOf(damaged(text, R"({"kind":"NoneType","value":null})", "null")), "none");
}

// Strides of a dimension of size 1 say nothing: whatever was recorded, a view has those that
// follow.
TEST_F(ImportFXErrorsTest, StridesOfSizeOneDoNotMatter) {
  FXText graph("forward");
  graph.input("x", "float32[]");
  graph.input("w", "float32[3]");
  graph.node("y", "aten.expand.default", "%x, [4, 1]", "float32[4,1;0,1]");
  graph.node("z", "aten.permute.default", "%y, [1, 0]", "float32[1,4;1,0]");
  graph.outputs("%z");
  EXPECT_EQ(errorsOf(fxProgram(graph)), "none");
  graph.node("v", "aten.expand.default", "%w, [2, 3]", "float32[2,3;1,1]");
  EXPECT_EQ(errorsOf(fxProgram(graph)),
            "/forward/nodes/2: 'expand' op result #0 ('%v') has type f32[2, 3; 1, 1]@cuda:0, "
            "expected f32[2, 3; 0, 1]@cuda:0\n");
}

// What is no fx file does not look like one, whatever it holds.
TEST_F(ImportFXErrorsTest, LooksLikeFX) {
  EXPECT_TRUE(looksLikeFX(fxProgram(forwardGraph(), backwardGraph())));
  EXPECT_TRUE(looksLikeFX(" \xEF\xBB\xBF{\"forward\" : {\"format\": \"fx-aten-2\"") == false);
  EXPECT_TRUE(looksLikeFX("\xEF\xBB\xBF {\"forward\" : {\"format\": \"fx-aten-2\""));
  for (const char *text :
       {"", " ", "pair @x {", "[", "{", "{}", "\"fx-aten-1\"", R"({"format":"fx-aten-1"})",
        R"({"schema_version":1,"forward":{"format":"fx-aten-1"}})",
        R"({"a":{"b":{"format":"fx-aten-1"}}})", R"({"forward":["format","fx-aten-1"]})",
        R"({"forward":{"format":["fx-aten-1"]}})", R"({"forward":{"format":"gx"}})",
        R"({"forward":{"a\"format":"fx-aten-1"}})", R"({"forward":{"x":"\)", "{\"a\""})
    EXPECT_FALSE(looksLikeFX(text)) << text;
}

} // namespace
