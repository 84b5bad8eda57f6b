//===- VerifierRegions.cpp - Claims, regions, generators --------------------===//

#include "VerifierImpl.h"

#include "rondo/ir/CoreOps.h"

#include "llvm/ADT/STLExtras.h"

using namespace rondo;
using namespace rondo::verifier;

RegionVerifier::RegionVerifier(const Trace &trace, Reporter &report)
    : trace_(trace), report_(report), del_(trace.registry().lookup(core::delOp)),
      cudaGraph_(trace.registry().lookup(core::cudaGraphOp)),
      generatorAdvance_(trace.registry().lookup("generator_advance")) {}

void RegionVerifier::verify(const Op &op, bool fitsSpec, bool isClaimed) {
  verifyClaim(op, isClaimed);
  if (isDel(op) && !trace_.has(TraceProperties::HasDels))
    report_.error(op, "'", op.name(), "' op in a trace without the property 'dels'");
  if (&op.spec() == cudaGraph_)
    verifyRegion(op, fitsSpec);
  else if (op.domain())
    report_.error(op, "'", op.name(), "' op has a capture domain; only '", core::cudaGraphOp,
                  "' may");
  if (&op.spec() == generatorAdvance_ && fitsSpec)
    noteAdvance(op);
}

void RegionVerifier::noteAdvance(const Op &op) {
  const Attribute *generator = op.attribute("generator"), *device = op.attribute("device");
  if (!generator || !generator->asString())
    return;
  Advance advance{op.body(), *generator->asString(), std::nullopt, op.id()};
  if (device && device->asDevice())
    advance.device = *device->asDevice();
  advances_.push_back(advance);
}

void RegionVerifier::verifyClaim(const Op &op, bool isClaimed) {
  if (const Claim *claim = op.claim()) {
    if (claim->executor.empty())
      report_.error(op, "'", op.name(), "' op has a claim that names no executor");
    return;
  }
  bool needsNone = op.spec().terminator || isDel(op) || &op.spec() == cudaGraph_;
  if (trace_.has(TraceProperties::Claimed) && !isClaimed && !needsNone)
    report_.error(op, "'", op.name(), "' op has no claim in a trace with the property 'claimed'");
}

void RegionVerifier::verifyRegion(const Op &op, bool fitsSpec) {
  if (!trace_.has(TraceProperties::HasRegions))
    report_.error(op, "'", op.name(), "' op in a trace without the property 'regions'");
  if (!op.domain())
    report_.error(op, "'", op.name(), "' op has no capture domain");
  if (!fitsSpec)
    return;
  const Attribute *region = op.attribute("region");
  if (std::optional<int64_t> number = region ? region->asInt() : std::nullopt)
    regions_.push_back({*number, op.id()});
  else if (region)
    report_.error(op, "'", op.name(), "' op attribute 'region' is ", *region,
                  ", expected a constant");
  verifyInputs(op);
}

void RegionVerifier::verifyInputs(const Op &op) {
  const Attribute *inputs = op.attribute("inputs");
  if (!inputs || !matches(AttributeKind::StringList, *inputs))
    return;
  const Attribute::List &words = *inputs->asList();
  if (words.size() != op.operands().size())
    report_.error(op, "'", op.name(), "' op attribute 'inputs' has ", Counted{words.size(), "word"},
                  " for ", Counted{op.operands().size(), "operand"});
  static constexpr llvm::StringLiteral known[] = {"auto", "static", "copied", "patched"};
  llvm::ArrayRef<llvm::StringLiteral> knownWords(known);
  for (size_t i = 0; i < words.size(); ++i) {
    llvm::StringRef word = *words[i].asString();
    if (llvm::is_contained(knownWords, word))
      continue;
    llvm::SmallVector<llvm::StringRef, 4> candidates(knownWords.begin(), knownWords.end());
    report_.error(op, "'", op.name(), "' op attribute 'inputs' has the unknown word '", word,
                  "' at #", i, didYouMean(word, candidates));
  }
}

void RegionVerifier::finish() {
  // Stable sorting keeps equal ones in program order.
  llvm::stable_sort(regions_, [](const Region &a, const Region &b) { return a.number < b.number; });
  for (size_t i = 1; i < regions_.size(); ++i) {
    if (regions_[i].number != regions_[i - 1].number)
      continue;
    Diagnostic *error = report_.error(trace_.op(regions_[i].op), "region ", regions_[i].number,
                                      " is in the trace twice");
    report_.note(error, trace_.op(regions_[i - 1].op), "the other one is here");
  }

  llvm::stable_sort(advances_, [](const Advance &a, const Advance &b) {
    return std::tie(a.body, a.generator, a.device) < std::tie(b.body, b.generator, b.device);
  });
  for (size_t i = 1; i < advances_.size(); ++i) {
    const Advance &previous = advances_[i - 1], &advance = advances_[i];
    if (std::tie(advance.body, advance.generator, advance.device) !=
        std::tie(previous.body, previous.generator, previous.device))
      continue;
    Diagnostic *error = report_.error(trace_.op(advance.op), "generator '", advance.generator,
                                      "' is advanced twice in one body");
    report_.note(error, trace_.op(previous.op), "advanced here before");
  }
}
