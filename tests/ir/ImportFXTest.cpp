//===- ImportFXTest.cpp - Traces as PyTorch gives them ----------------------===//

#include "support/TestPaths.h"

#include "rondo/ir/ImportFX.h"

#include "rondo/ir/CoreOps.h"
#include "rondo/ir/JSON.h"
#include "rondo/ir/StorageRoots.h"
#include "rondo/ir/Text.h"
#include "rondo/ir/TraceBuilder.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

#include <ostream>

using namespace rondo;

namespace {

/// A file and what must be in it: counted from the file, not from what the importer made.
struct Sample {
  const char *name;
  unsigned forwardOps, backwardOps; ///< `return` included; no backward: 0
  unsigned saved, parameters, buffers, mutated;
};

std::ostream &operator<<(std::ostream &os, const Sample &sample) {
  return os << sample.name;
}

constexpr Sample samples[] = {
    {"adam", 70, 0, 0, 0, 10, 10},
    {"branchy", 135, 328, 84, 66, 0, 0},
    {"convnet", 18, 23, 18, 8, 3, 3},
    {"decode_tiny", 94, 0, 0, 8, 2, 2},
    {"gpt2_small_bf16", 424, 692, 301, 148, 0, 0},
    {"gpt_tiny", 83, 131, 61, 28, 0, 0},
    {"gpt_tiny_checkpoint", 81, 195, 39, 28, 0, 0},
    {"gpt_tiny_checkpoint_dropout", 81, 202, 44, 28, 0, 0},
    {"gpt_tiny_dropout", 85, 135, 65, 28, 0, 0},
    {"gpt_tiny_math", 133, 171, 61, 28, 0, 0},
    {"llama_tiny", 170, 291, 78, 21, 2, 0},
    {"llama_tiny_bf16", 181, 302, 78, 21, 2, 0},
    {"mlp", 14, 36, 13, 8, 0, 0},
};

class ImportFXTest : public testing::TestWithParam<Sample> {
protected:
  ImportFXTest() { llvm::cantFail(registerCoreOps(registry_)); }

  static std::string fileText(llvm::StringRef name) {
    auto buffer = llvm::MemoryBuffer::getFile(testDataDir() + "/traces/" + name.str() + ".json");
    EXPECT_TRUE(bool(buffer)) << name.str();
    return buffer ? (*buffer)->getBuffer().str() : "";
  }

  TracePair import(llvm::StringRef name) {
    llvm::Expected<TracePair> pair = importFX(fileText(name), name, registry_);
    if (pair)
      return std::move(*pair);
    ADD_FAILURE() << llvm::toString(pair.takeError());
    return TracePair(Trace(registry_));
  }

  static std::string text(const TracePair &pair) {
    std::string result;
    llvm::raw_string_ostream os(result);
    print(pair, os);
    return os.str();
  }

  /// All ops of a name, in program order.
  static std::vector<const Op *> opsNamed(const Trace &trace, llvm::StringRef name) {
    std::vector<const Op *> found;
    forEachOp(trace, [&](const Op &op) {
      if (op.name() == name)
        found.push_back(&op);
    });
    return found;
  }

  OpRegistry registry_;
};

std::vector<const Trace *> tracesOf(const TracePair &pair) {
  std::vector<const Trace *> traces{&pair.forward()};
  if (pair.hasBackward())
    traces.push_back(&pair.backward());
  return traces;
}

using Samples = ImportFXTest;
INSTANTIATE_TEST_SUITE_P(Traces, Samples, testing::ValuesIn(samples),
                         [](const auto &info) { return info.param.name; });

// What the file holds arrives: ops, saved values, parameters, buffers, mutations.
TEST_P(Samples, Counts) {
  const Sample &sample = GetParam();
  TracePair pair = import(sample.name);
  EXPECT_EQ(pair.name(), sample.name);
  EXPECT_EQ(pair.forward().ops().size(), sample.forwardOps);
  ASSERT_EQ(pair.hasBackward(), sample.backwardOps != 0);
  if (pair.hasBackward()) {
    EXPECT_EQ(pair.backward().ops().size(), sample.backwardOps);
  }
  EXPECT_EQ(pair.saved().size(), sample.saved);
  EXPECT_EQ(opsNamed(pair.forward(), "copy_").size(), sample.mutated);
  unsigned parameters = 0, buffers = 0;
  for (ValueId argument : pair.forward().arguments()) {
    ValueTags tags = pair.forward().tags(argument);
    parameters += tags == ValueTags::Parameter;
    buffers += tags == ValueTags::Buffer;
    EXPECT_EQ(pair.forward().valuePath(argument).empty(), tags == ValueTags::None);
  }
  EXPECT_EQ(parameters, sample.parameters);
  EXPECT_EQ(buffers, sample.buffers);
}

// Every op of the sample files has a core op.
TEST_P(Samples, NothingIsOpaque) {
  TracePair pair = import(GetParam().name);
  for (const Trace *trace : tracesOf(pair))
    forEachOp(*trace, [](const Op &op) { EXPECT_FALSE(op.spec().opaque) << op.name().str(); });
}

// What was recorded is what inference says: all of it for views, all but strides for fresh results.
TEST_P(Samples, RecordedTypesAreInferred) {
  TracePair pair = import(GetParam().name);
  unsigned checked = 0;
  for (const Trace *trace : tracesOf(pair))
    forEachOp(*trace, [&](const Op &op) {
      llvm::SmallVector<const Type *, 4> operands;
      for (ValueId operand : op.operands())
        operands.push_back(operand ? &trace->type(operand) : nullptr);
      llvm::SmallVector<Type, 4> inferred;
      ASSERT_TRUE(op.spec().infer || op.spec().terminator) << op.name().str();
      if (llvm::Error error = inferResultTypes(op.spec(), operands, op.attributes(), inferred)) {
        ADD_FAILURE() << llvm::toString(std::move(error));
        return;
      }
      ASSERT_EQ(inferred.size(), op.results().size()) << op.name().str();
      for (unsigned i = 0; i < inferred.size(); ++i) {
        Type recorded = trace->type(op.result(i));
        if (const TensorType *tensor = recorded.asTensor(); tensor && !op.spec().isView()) {
          TensorType contiguous(tensor->dtype, tensor->shape, tensor->device);
          TensorType other = *inferred[i].asTensor();
          EXPECT_EQ(Type(contiguous), Type(TensorType(other.dtype, other.shape, other.device)));
        } else {
          EXPECT_EQ(recorded, inferred[i]) << op.name().str() << recorded.str();
        }
        ++checked;
      }
    });
  EXPECT_GE(checked, GetParam().forwardOps - 1 - 2);
}

// Text reads back to the same text, JSON to the same JSON, and one through the other.
TEST_P(Samples, RoundTrips) {
  TracePair pair = import(GetParam().name);
  std::string printed = text(pair);
  llvm::Expected<TracePair> parsed = parsePair(printed, "printed.trace", registry_);
  ASSERT_TRUE(bool(parsed)) << llvm::toString(parsed.takeError());
  EXPECT_EQ(text(*parsed), printed);

  std::string json, again;
  llvm::raw_string_ostream jsonStream(json), againStream(again);
  writeJSON(pair, jsonStream);
  llvm::Expected<TracePair> read = readJSON(jsonStream.str(), "written.json", registry_);
  ASSERT_TRUE(bool(read)) << llvm::toString(read.takeError());
  writeJSON(*read, againStream);
  EXPECT_EQ(againStream.str(), json);
  EXPECT_EQ(text(*read), printed);
}

// The file is told from the JSON form of what is in it, and importing is deterministic.
TEST_P(Samples, LooksLikeWhatItIs) {
  std::string file = fileText(GetParam().name);
  EXPECT_TRUE(looksLikeFX(file));
  TracePair pair = import(GetParam().name);
  std::string json;
  llvm::raw_string_ostream os(json);
  writeJSON(pair, os);
  EXPECT_FALSE(looksLikeFX(os.str()));
  EXPECT_FALSE(looksLikeFX(text(pair)));
  EXPECT_EQ(text(import(GetParam().name)), text(pair));
}

// Every op says where in the file it was, but does not print it.
TEST_P(Samples, OpsAreLocated) {
  TracePair pair = import(GetParam().name);
  for (const Trace *trace : tracesOf(pair))
    forEachOp(*trace, [&](const Op &op) {
      ASSERT_TRUE(op.location());
      EXPECT_FALSE(op.hasExplicitLocation());
      EXPECT_EQ(op.location()->file, GetParam().name);
      EXPECT_EQ(op.location()->path.substr(0, trace->name().size() + 1), "/" + trace->name().str());
    });
}

// A saved value has one type on both sides, and a saved parameter is still one.
TEST_P(Samples, SavedLinks) {
  TracePair pair = import(GetParam().name);
  for (const SavedLink &link : pair.saved()) {
    EXPECT_EQ(pair.forward().type(link.forward), pair.backward().type(link.backward));
    if (pair.forward().isArgument(link.forward)) {
      EXPECT_EQ(pair.forward().tags(link.forward), pair.backward().tags(link.backward));
      EXPECT_EQ(pair.forward().valuePath(link.forward), pair.backward().valuePath(link.backward));
    }
  }
}

// Mutated inputs are written once each, in the order of the file, after everything that reads them,
// and what is returned does not alias them.
TEST_P(Samples, MutatedInputsAreWrittenInPlace) {
  TracePair pair = import(GetParam().name);
  const Trace &forward = pair.forward();
  StorageRoots roots(forward);
  llvm::DenseSet<ValueId> written;
  unsigned last = 0;
  for (OpId id : forward.ops()) {
    const Op &op = forward.op(id);
    if (op.name() == "copy_") {
      ASSERT_TRUE(forward.isArgument(op.operand(0)));
      EXPECT_EQ(forward.tags(op.operand(0)), ValueTags::Buffer);
      EXPECT_TRUE(written.empty() || forward.index(op.operand(0)) > last);
      last = forward.index(op.operand(0));
      EXPECT_TRUE(written.insert(op.operand(0)).second);
      EXPECT_EQ(forward.type(op.result()), forward.type(op.operand(0)));
      continue;
    }
    for (ValueId operand : op.operands())
      EXPECT_FALSE(operand && llvm::any_of(roots.roots(operand),
                                           [&](ValueId root) { return written.contains(root); }))
          << op.name().str();
  }
}

// An optimiser step: the parameters of the step count are new values, written at the end.
TEST_F(ImportFXTest, AdamWritesItsState) {
  TracePair pair = import("adam");
  std::vector<std::string> pairs;
  for (const Op *op : opsNamed(pair.forward(), "copy_"))
    pairs.push_back((pair.forward().valuePath(op->operand(0)) + " = " +
                     pair.forward().name(op->operand(1)) + " as " +
                     pair.forward().name(op->result()))
                        .str());
  EXPECT_EQ(pairs,
            (std::vector<std::string>{"step = add as arg0_1.new", "p0 = sub as arg1_1.new",
                                      "m0 = add_1 as arg2_1.new", "v0 = add_2 as arg3_1.new",
                                      "p1 = sub_1 as arg6_1.new", "m1 = add_4 as arg7_1.new",
                                      "v1 = add_5 as arg8_1.new", "p2 = sub_2 as arg10_1.new",
                                      "m2 = add_7 as arg11_1.new", "v2 = add_8 as arg12_1.new"}));
  ASSERT_EQ(pair.forward().terminator()->operands().size(), 1u);
  EXPECT_EQ(pair.forward().name(pair.forward().terminator()->operand(0)), "add_10");
}

// Dropout without a generator draws from the default one: read once, offsets one after the other,
// advanced once by what was drawn. The backward takes the masks.
TEST_F(ImportFXTest, DropoutDrawsFromTheDefaultGenerator) {
  TracePair pair = import("gpt_tiny_dropout");
  const Trace &forward = pair.forward();
  std::vector<const Op *> reads = opsNamed(forward, "generator_read");
  std::vector<const Op *> advances = opsNamed(forward, "generator_advance");
  std::vector<const Op *> dropouts = opsNamed(forward, "dropout");
  ASSERT_EQ(reads.size(), 1u);
  ASSERT_EQ(advances.size(), 1u);
  ASSERT_EQ(dropouts.size(), 4u);
  int64_t offset = 0;
  for (const Op *op : dropouts) {
    EXPECT_EQ(op->operand(1), reads[0]->result());
    EXPECT_EQ(op->attribute("offset")->asInt(), offset);
    EXPECT_EQ(op->attribute("p")->asNumber(), 0.1);
    offset += *forward.tensorType(op->operand(0)).numElements().asConstant();
  }
  EXPECT_EQ(offset, 4 * 2 * 16 * 32);
  EXPECT_EQ(advances[0]->attribute("count")->asInt(), offset);
  EXPECT_EQ(*reads[0]->attribute("generator"), *advances[0]->attribute("generator"));
  EXPECT_EQ(opsNamed(pair.backward(), "dropout_backward").size(), 4u);
  EXPECT_TRUE(opsNamed(pair.backward(), "generator_read").empty());
  EXPECT_TRUE(opsNamed(pair.backward(), "dropout").empty());
}

// Recomputed dropout draws from the same state at the same offset as in the forward: the state is
// an argument and saved for the backward.
TEST_F(ImportFXTest, RecomputedDropoutDrawsTheSameNumbers) {
  TracePair pair = import("gpt_tiny_checkpoint_dropout");
  const Trace &forward = pair.forward(), &backward = pair.backward();
  EXPECT_TRUE(opsNamed(forward, "generator_read").empty());
  EXPECT_TRUE(opsNamed(backward, "generator_read").empty());
  llvm::DenseMap<ValueId, ValueId> savedAs; // backward to forward
  unsigned states = 0;
  for (const SavedLink &link : pair.saved()) {
    savedAs[link.backward] = link.forward;
    if (forward.type(link.forward).asRNGState()) {
      ++states;
      EXPECT_EQ(forward.name(link.forward).drop_front(3),
                backward.name(link.backward).drop_front(3));
    }
  }
  EXPECT_EQ(states, 6u);
  std::vector<const Op *> drawn = opsNamed(forward, "dropout"),
                          again = opsNamed(backward, "dropout");
  ASSERT_EQ(drawn.size(), 4u);
  ASSERT_EQ(again.size(), 4u);
  llvm::DenseSet<ValueId> used;
  for (const Op *op : again) {
    ValueId state = savedAs.lookup(op->operand(1));
    EXPECT_TRUE(used.insert(state).second);
    const Op *original = *llvm::find_if(drawn, [&](const Op *o) { return o->operand(1) == state; });
    EXPECT_EQ(forward.type(original->operand(0)), backward.type(op->operand(0)));
    EXPECT_EQ(original->attribute("offset")->asInt(), 0);
    EXPECT_EQ(op->attribute("offset")->asInt(), 0);
  }
  // Attention without dropout needs no state.
  for (const Trace *trace : tracesOf(pair))
    for (const Op *op : opsNamed(*trace, "scaled_dot_product_attention"))
      EXPECT_EQ(op->operands().size(), 3u);
}

// Seeds of attention are neither results nor saved, and its padded statistics keep their shape.
TEST_F(ImportFXTest, AttentionLosesItsSeeds) {
  TracePair pair = import("gpt_tiny");
  std::vector<const Op *> attentions = opsNamed(pair.forward(), "scaled_dot_product_attention");
  ASSERT_EQ(attentions.size(), 2u);
  for (const Op *op : attentions) {
    ASSERT_EQ(op->results().size(), 2u);
    EXPECT_EQ(op->attribute("logsumexp_shape")->str(), "[2, 2, 32]");
    EXPECT_EQ(op->attribute("causal")->str(), "true");
  }
  for (const SavedLink &link : pair.saved())
    EXPECT_FALSE(pair.forward().tensorType(link.forward).shape.empty() &&
                 pair.forward().tensorType(link.forward).dtype == DType::I64);
  EXPECT_EQ(opsNamed(pair.backward(), "scaled_dot_product_attention_backward").size(), 2u);
}

// Gradients that nobody needs are absent; the others are in the order of the forward's inputs.
TEST_F(ImportFXTest, Gradients) {
  TracePair pair = import("mlp");
  std::string names;
  for (ValueId value : pair.backward().terminator()->operands())
    names += (value ? pair.backward().name(value).str() : "none") + " ";
  EXPECT_EQ(names, "t_18 view_3 none t_15 view_2 t_11 view_1 t_7 view none ");
}

// A file cut off anywhere gives one located error, and so does one with a byte changed.
TEST_F(ImportFXTest, SurvivesDamage) {
  std::string whole = fileText("mlp");
  ASSERT_GT(whole.size(), 1000u);
  for (size_t length = 0; length < whole.size(); length += 7) {
    llvm::Expected<TracePair> pair =
        importFX(llvm::StringRef(whole).take_front(length), "cut.json", registry_);
    ASSERT_FALSE(bool(pair)) << length;
    std::string message = llvm::toString(pair.takeError());
    EXPECT_EQ(message.substr(0, 11), "cut.json:1:") << message;
    looksLikeFX(llvm::StringRef(whole).take_front(length));
  }
  for (size_t i = 0; i < whole.size(); i += 7) {
    std::string changed = whole;
    changed[i] = "0\"]x-"[i % 5];
    llvm::Expected<TracePair> pair = importFX(changed, "changed.json", registry_);
    if (!pair) {
      EXPECT_EQ(llvm::toString(pair.takeError()).substr(0, 12), "changed.json");
    }
  }
}

} // namespace
