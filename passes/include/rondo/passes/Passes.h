//===- Passes.h - The passes that come with Rondo ---------------*- C++ -*-===//

#pragma once

#include "rondo/passes/Pass.h"

#include "rondo/ir/Claim.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace rondo {

/// `dce`: removes ops whose results nothing needs and that have no effects that matter: in the
/// backward first, so that what it no longer needs is no longer saved by the forward. A write to
/// storage that came in from outside always matters; a write to storage that nothing reads
/// afterwards does not. Unused links are dropped.
std::unique_ptr<Pass> createDeadCodeEliminationPass();

/// `cse`: merges ops with equal operands, attributes and bodies-free specs. Never merges random
/// ops, ops with effects, reads of storage that was written in between, storage that is written,
/// or two results that the caller gets; a merged op's uses get the first one's results. Links that
/// thereby save one value, and that the backward only reads, become one.
std::unique_ptr<Pass> createCommonSubexpressionEliminationPass();

/// `canonicalise`: composes chains of views (reshape of reshape, permute of permute, detach, …),
/// removes views and copies (casts to the same dtype) that change nothing, and dead views that this
/// leaves. A copy stays where its being one can be seen: by a later write, or by the caller.
std::unique_ptr<Pass> createCanonicalisePass();

/// `specialise{B=8 S=128}`: replaces symbols in types and attributes by numbers, throughout the
/// pair; views get the strides that their inference gives for the numbers. Forbids `Claimed`:
/// claims are for shapes. Errors: a binding for a symbol that does not occur (also because it was
/// bound before), a negative size, a result that contradicts an op's inference, each as the
/// verifier locates it.
std::unique_ptr<Pass> createSpecialisePass(SymbolBindings bindings);
/// The same as a function. After an error that a number does not fit, the pair may be in any state.
llvm::Error specialise(TracePair &pair, const SymbolBindings &bindings);

struct PlaceOptions {
  std::optional<Device> from; ///< nothing: every device that is no host
  Device to;
};
/// `place{from=cuda:0 to=host}`: moves a pair to another device. Tensors and RNG states on `from`,
/// and attributes that name it, are on `to` afterwards, throughout the pair; a `to_device` whose
/// operand is there already stays, and copies. Nothing else changes: placed back, the pair is as it
/// was if `to` was not in use before. Forbids `Claimed`: claims are for devices. Errors: `from` is
/// `to`; what two devices may do and one may not, such as two advances of one generator, as the
/// verifier locates it.
std::unique_ptr<Pass> createPlacePass(PlaceOptions options = {});

struct UseGeneratorOptions {
  std::string generator = "default"; ///< to draw from
  std::string path; ///< a module path: ops in it and in the modules below it; empty: all ops
};
/// `use-generator{generator=rank path=blocks.0}`: lets the random ops of a module draw from another
/// generator, which is read and advanced in the trace that read the old one. Whatever draws the
/// same numbers, in either trace, does so still: a backward that repeats an op of the forward gets
/// the new state by a saved link, and one in a `checkpoint` as an argument. Offsets are new, so
/// that no two ops share numbers; what is not in the module draws what it drew before. Ops that
/// draw from a state which is an argument stay, and so do those that use `generator` already: twice
/// changes nothing. Forbids `Claimed`. Errors: no op to move and none that was; a generator that is
/// not advanced in the trace or read in a body; ops in bodies of `if` and `while`; a trace that
/// seeds `generator`.
std::unique_ptr<Pass> createUseGeneratorPass(UseGeneratorOptions options);

/// `feed-masks`: makes the mask of every `dropout` of the forward's and the backward's top body an
/// argument, and the op a product with it: to compare with a run elsewhere, which drew numbers of
/// its own. The arguments follow the others and have the masks' names. Twice changes nothing.
/// Forbids `Claimed`.
std::unique_ptr<Pass> createFeedMasksPass();

/// A gradient that may be accumulated. Borrowed for the call.
struct GradientQuery {
  const TracePair &pair;
  unsigned result; ///< number of the backward's result
  ValueId value;   ///< of the backward
  const TensorType &type;
  /// The forward's argument that it is the gradient of: that of the same number, where the backward
  /// has a result, present or missing, for each argument, of its shape and dtype. Else invalid.
  ValueId argument;
};

/// How the first microbatch of a step differs from the others.
enum class FirstMicrobatch : uint8_t {
  None, ///< in nothing: the caller zeroes the buffers
  Flag, ///< a bool on the device, an argument of the backward: where it is set, what a buffer holds
        ///< is overwritten, be it nan
};

struct AccumulateGradientsOptions {
  /// Which gradients are added to a buffer: names of results, or names, paths
  /// (`blocks.0.mlp.weight`) or modules (`blocks.0`) of arguments of the forward. Empty: those of
  /// parameters; all, if the forward has no parameters or it is not known which result belongs to
  /// which.
  std::vector<std::string> gradients;
  /// If there is one: is this gradient, of those named, or of all, added to a buffer? Else the
  /// backward returns it as a fresh tensor.
  std::function<bool(const GradientQuery &)> isAccumulated;
  FirstMicrobatch firstMicrobatch = FirstMicrobatch::None;
};
/// `accumulate-gradients{gradients=blocks.0 first-microbatch=flag}`: adds gradients to buffers of
/// the caller's, inside the backward. For each chosen result the backward gets an argument, static,
/// named `grad_` and then as the parameter (or the result) is, of the gradient's dtype and shape
/// and in the parameter's layout; the result is that buffer. They follow the arguments that there
/// are in the order of results, then, for each device with such buffers, a flag `first_microbatch`.
/// A value that is returned twice has two buffers. A missing result stays missing and has none, and
/// one that is made in place in an argument stays as it is: so twice changes nothing. Since it
/// changes what a backward takes, it is for pairs that are not compiled yet, not for a program's
/// pipeline. Forbids `Claimed` and `HasDels`. Errors: a name that no gradient has, or that a result
/// has which is no floating-point tensor.
std::unique_ptr<Pass> createAccumulateGradientsPass(AccumulateGradientsOptions options = {});

/// `execution`: sets `Claimed`, forbids `HasDels`. Every op is claimed by the first of `sources`
/// (in order of priority) that accepts it; ops with bodies and the ops in their bodies alike. Ops
/// that have a claim already keep it; terminators, `del` and `cuda_graph` need none, and neither
/// does an op inside a region op that is claimed as a whole.
///
/// A source may claim groups of ops that no source before it claimed. A group is made consecutive
/// and becomes a `fused` op with the group's claim, workspace included; its ops get the claim
/// without the workspace. Groups that overlap an earlier one, that data or effects leave and come
/// back to, or that are malformed are ignored, and their ops offered one by one.
///
/// Errors: one for every unclaimed op, with what each source answered as notes. `sources` must
/// outlive the pass; their names hold no '+'.
std::unique_ptr<Pass> createExecutionTransform(std::vector<const ClaimSource *> sources);

/// `del`: sets `HasDels`. Puts `del` after the last use of every value, inside bodies too, never of
/// a value that the body's `return` gives and never of an argument of a nested body (its owner is
/// outside). Running it twice changes nothing.
std::unique_ptr<Pass> createDelPass();

} // namespace rondo
