//===- ImportFX.cpp - PyTorch's ATen graphs ---------------------------------===//
//
// A file is read and checked (FXGraph.h), its nodes are lowered (FXLowering.h), and here the two
// traces get what the file says beside its nodes:
//
//   inputs {role: parameter, module_name: l.0.weight}    %w: f32[..] parameter path "l.0.weight"
//   outputs_are {mutated_inputs: [step],                 %step.new = copy_(%step, %add)
//                user: [1], saved_for_backward: [2]}     return(%loss, %x saved #0)
//   native_dropout without a generator                   %rng_state = generator_read()
//                                                        generator_advance() {count = 1024}
//
// `copy_` to a mutated input makes the older names of its storage stale. What is returned, or
// copied later, and may alias that storage is cloned before the first `copy_`.
//
//===----------------------------------------------------------------------===//

#include "rondo/ir/ImportFX.h"

#include "FXCall.h"
#include "FXOpMapping.h"
#include "ShapeInference.h"

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/StorageRoots.h"
#include "rondo/ir/Verifier.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace rondo;
using namespace rondo::fx;

namespace {

/// Makes the pair. One object for one try: see LoweringState::found.
class Importer {
public:
  Importer(const Program &program, const OpRegistry &registry, LoweringState &state)
      : program_(program), forward_(registry, "forward"), backward_(registry, "backward"),
        forwardLowering_(program.forward, Side::Forward, forward_, state) {
    if (program.backward)
      backwardLowering_.emplace(*program.backward, Side::Backward, backward_, state);
  }

  TracePair run();

private:
  /// What the forward returns, and the argument of the backward that it is saved for.
  struct Returned {
    ValueId value;
    std::optional<ValueId> savedFor;
    JSONCursor where;
  };

  void addForwardArguments();
  void collectReturns();
  ValueId addSavedArgument(ValueIndex input, const Argument &output, ValueId value);
  void addRemainingArguments(ValueIndex firstInput);
  void writeMutatedInputs();
  void cloneAliases(const llvm::DenseSet<ValueId> &written);
  void endBackward();

  const Program &program_;
  Trace forward_, backward_;
  GraphLowering forwardLowering_;
  std::optional<GraphLowering> backwardLowering_;
  std::vector<Returned> returned_;
  struct Mutation {
    ValueId input, newValue;
    JSONCursor where;
  };
  std::vector<Mutation> mutations_;
};

} // namespace

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// The device of a value, if it is a tensor.
static std::optional<Device> deviceOf(const Graph &graph, ValueIndex value) {
  const TensorType *type = graph.values[value].result.asTensor();
  return type ? std::optional(type->device) : std::nullopt;
}

/// The device of the first tensor of the first op that draws from `generator`.
static std::optional<Device> deviceOfUse(const Graph &graph, ValueIndex generator) {
  for (const Node &node : graph.nodes) {
    bool draws = llvm::any_of(node.kwargs, [&](const auto &kwarg) {
      return kwarg.second.kind == Argument::Kind::Ref && kwarg.second.ref == generator;
    });
    if (!draws)
      continue;
    for (const Argument &arg : node.args) {
      if (arg.kind != Argument::Kind::Ref)
        continue;
      if (std::optional<Device> device = deviceOf(graph, arg.ref))
        return device;
    }
  }
  return std::nullopt;
}

/// The type of a generator's state. Where no device is recorded it is that of its first use, or
/// else of the first tensor among the inputs.
static Type generatorType(const Graph &graph, ValueIndex input) {
  std::optional<Device> device = graph.values[input].result.device;
  if (!device)
    device = deviceOfUse(graph, input);
  for (ValueIndex i = 0; i < graph.numInputs && !device; ++i)
    device = deviceOf(graph, i);
  return RNGStateType{device.value_or(Device::host())};
}

void Importer::addForwardArguments() {
  const Graph &graph = program_.forward;
  for (ValueIndex i = 0; i < graph.numInputs; ++i) {
    const Result &result = graph.values[i].result;
    bool isGenerator = result.kind == Result::Kind::Generator;
    forwardLowering_.addArgument(i, isGenerator ? generatorType(graph, i) : *result.type);
  }
}

/// The argument of the backward for a saved value. One that is an input of the forward keeps its
/// tags and path.
ValueId Importer::addSavedArgument(ValueIndex input, const Argument &output, ValueId value) {
  ValueId argument = backwardLowering_->addArgument(input, forward_.type(value));
  if (output.ref < program_.forward.numInputs) {
    backward_.setTags(argument, forward_.tags(value));
    backward_.setValuePath(argument, forward_.valuePath(value));
  }
  return argument;
}

/// Adds the inputs of the backward after the saved ones: incoming gradients, and generators, which
/// are the forward's of the same number.
void Importer::addRemainingArguments(ValueIndex firstInput) {
  const Graph &graph = *program_.backward, &forward = program_.forward;
  for (ValueIndex i = firstInput; i < graph.numInputs; ++i) {
    const Value &input = graph.values[i];
    if (input.result.kind != Result::Kind::Generator) {
      backwardLowering_->addArgument(i, *input.result.type);
      continue;
    }
    std::optional<uint32_t> number = Graph::rngStateNumber(input.name, "bwd_rng_state_");
    ValueIndex source = 0;
    while (Graph::rngStateNumber(forward.values[source].name, "fwd_rng_state_") != number)
      ++source; // FXGraph has checked that there is one
    ValueId state = forwardLowering_.binding(source).value;
    ValueId argument = backwardLowering_->addArgument(i, forward_.type(state));
    backwardLowering_->savedStates.push_back({state, argument, /*isAdded=*/false});
    returned_.push_back({state, argument, forward.values[source].where});
  }
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

/// Collects what the forward returns and copies, and gives the backward its arguments.
void Importer::collectReturns() {
  const Graph &graph = program_.forward;
  ValueIndex nextInput = 0;
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const Argument &output = graph.outputs[i];
    if (i < graph.mutated.size()) {
      ValueId input = forwardLowering_.binding(graph.mutated[i]).value;
      mutations_.push_back({input, forwardLowering_.output(output), output.where});
      continue;
    }
    if (!graph.isSaved[i]) {
      returned_.push_back({forwardLowering_.output(output), std::nullopt, output.where});
      continue;
    }
    ValueIndex input = nextInput++;
    if (const Binding &binding = forwardLowering_.binding(output.ref); binding.seed) {
      backwardLowering_->bind(input, binding);
      continue;
    }
    ValueId value = forwardLowering_.output(output);
    returned_.push_back({value, addSavedArgument(input, output, value), output.where});
  }
  if (backwardLowering_)
    addRemainingArguments(nextInput);
}

void Importer::cloneAliases(const llvm::DenseSet<ValueId> &written) {
  StorageRoots roots(forward_);
  llvm::DenseMap<ValueId, ValueId> clones;
  auto replace = [&](ValueId &value, JSONCursor where) {
    if (!value || !forward_.type(value).isTensor() ||
        llvm::none_of(roots.roots(value), [&](ValueId root) { return written.contains(root); }))
      return;
    ValueId &clone = clones[value];
    if (!clone) {
      const TensorType &type = forward_.tensorType(value);
      TensorType cloned =
          overlapsItself(type) ? TensorType(type.dtype, type.shape, type.device) : type;
      std::string name = (forward_.name(value) + ".old").str();
      OpId op = forwardLowering_.append("clone", {value}, {{"contiguous", cloned.isContiguous()}},
                                        Type(cloned), where, forwardLowering_.uniqueName(name));
      clone = forward_.op(op).result();
    }
    value = clone;
  };
  for (Returned &returned : returned_) {
    ValueId before = returned.value;
    replace(returned.value, returned.where);
    if (returned.savedFor && returned.value != before) {
      backward_.setType(*returned.savedFor, forward_.type(returned.value));
      backward_.setTags(*returned.savedFor, ValueTags::None);
      backward_.setValuePath(*returned.savedFor, "");
    }
  }
  for (Mutation &mutation : mutations_)
    replace(mutation.newValue, mutation.where);
}

void Importer::writeMutatedInputs() {
  llvm::erase_if(mutations_, [&](const Mutation &mutation) {
    return !mutation.newValue || forwardLowering_.isWritten(mutation.input, mutation.newValue);
  });
  if (mutations_.empty())
    return;
  llvm::DenseSet<ValueId> written;
  for (const Mutation &mutation : mutations_)
    written.insert(mutation.input);
  cloneAliases(written);
  for (const Mutation &mutation : mutations_) {
    std::string name = (forward_.name(mutation.input) + ".new").str();
    forwardLowering_.append("copy_", {mutation.input, mutation.newValue}, {},
                            forward_.type(mutation.input), mutation.where,
                            forwardLowering_.uniqueName(name));
  }
}

void Importer::endBackward() {
  JSONCursor outputs = *program_.backward->where.find("outputs");
  llvm::SmallVector<ValueId, 8> gradients;
  for (const Argument &output : program_.backward->outputs)
    gradients.push_back(backwardLowering_->output(output));
  backwardLowering_->advanceGenerators(outputs);
  backwardLowering_->append(core::returnOp, gradients, {}, std::nullopt, outputs);
}

TracePair Importer::run() {
  addForwardArguments();
  forwardLowering_.lowerNodes();
  collectReturns();
  if (backwardLowering_) {
    backwardLowering_->forwardTrace = &forward_;
    backwardLowering_->lowerNodes();
    for (const GraphLowering::SavedState &saved : backwardLowering_->savedStates)
      if (saved.isAdded)
        returned_.push_back({saved.forward, saved.backward, program_.forward.where});
    endBackward();
  }
  JSONCursor outputs = *program_.forward.where.find("outputs");
  forwardLowering_.advanceGenerators(outputs);
  writeMutatedInputs();
  llvm::SmallVector<ValueId, 16> values;
  for (const Returned &returned : returned_)
    values.push_back(returned.value);
  forwardLowering_.append(core::returnOp, values, {}, std::nullopt, outputs);

  TracePair pair = backwardLowering_ ? TracePair(std::move(forward_), std::move(backward_))
                                     : TracePair(std::move(forward_));
  for (size_t i = 0; i < returned_.size(); ++i)
    if (returned_[i].savedFor)
      pair.linkSaved(i, pair.backward().index(*returned_[i].savedFor));
  if (!program_.model.empty())
    pair.setName(sanitisedName(program_.model));
  return pair;
}

static std::vector<FXOutput> describeOutputs(const Program &program) {
  const Graph &graph = program.forward;
  std::vector<FXOutput> outputs;
  size_t numSaved = 0;
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    if (i < graph.mutated.size())
      outputs.push_back({FXOutput::Kind::Mutated, graph.values[graph.mutated[i]].name});
    else if (graph.isSaved[i] && program.backward)
      outputs.push_back({FXOutput::Kind::Saved, program.backward->values[numSaved++].name});
    else
      outputs.push_back({});
  }
  return outputs;
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

llvm::Expected<TracePair> rondo::importFX(llvm::StringRef text, llvm::StringRef file,
                                          const OpRegistry &registry,
                                          std::vector<FXOutput> *outputs) {
  DiagnosticList diagnostics;
  std::optional<JSONDocument> document = JSONDocument::parse(text, file, diagnostics);
  std::optional<Program> program = document ? readProgram(document->root()) : std::nullopt;
  if (!program || diagnostics.hasErrors())
    return diagnostics.takeError();
  if (outputs)
    *outputs = describeOutputs(*program);

  LoweringState state;
  for (const Mapping &mapping : mappings())
    state.mappings[mapping.aten] = &mapping;
  while (true) {
    TracePair pair = Importer(*program, registry, state).run();
    if (diagnostics.hasErrors()) // of mappings
      return diagnostics.takeError();
    if (!state.found.empty()) {
      // Some seeds have uses that need the ATen op as it is.
      state.keptOpaque.insert(state.found.begin(), state.found.end());
      state.found.clear();
      state.attentions.clear();
      continue;
    }
    verify(pair, diagnostics);
    if (diagnostics.hasErrors())
      return diagnostics.takeError();
    return pair;
  }
}

bool rondo::looksLikeFX(llvm::StringRef text) {
  // Follows strings and depth alone: an fx file says its format among the first members of
  // `forward`, a trace its schema version as a member of the root.
  unsigned depth = 0;
  llvm::StringRef key;
  text.consume_front("\xEF\xBB\xBF");
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (llvm::isSpace(c) || c == ':')
      continue;
    if (c == '{' || c == '[') {
      ++depth;
    } else if (depth == 0) {
      return false;
    } else if (c == '}' || c == ']') {
      if (--depth == 0)
        return false;
    } else if (c == '"') {
      size_t end = i + 1;
      while (end < text.size() && text[end] != '"')
        end += text[end] == '\\' ? 2 : 1;
      llvm::StringRef string = text.slice(i + 1, end);
      if (depth == 1 && string == "schema_version")
        return false;
      if (depth == 2 && key == "format")
        return string.take_front(8) == "fx-aten-";
      key = string;
      i = end;
      continue;
    }
    key = "";
  }
  return false;
}
