//===- FXCall.h - One ATen call on its way to core ops ----------*- C++ -*-===//

#pragma once

#include "FXLowering.h"

#include "llvm/ADT/DenseSet.h"

namespace rondo::fx {

using AttributeList = llvm::SmallVector<std::pair<llvm::StringRef, Attribute>, 6>;

/// A call of an ATen op. Arguments are asked for by the names of ATen's schema, whether they were
/// given by position or by keyword; a name that the schema lacks is an absent argument. What is not
/// of the form asked for makes the call fail, and the answer is then some harmless value. An
/// argument that was given and never asked for makes the call fail, too, when ops are emitted.
class Call {
public:
  /// `parameters`: names separated by spaces. `state`: the generator to draw from; invalid: the
  /// default one.
  Call(GraphLowering &lowering, const Node &node, llvm::StringRef parameters,
       llvm::ArrayRef<Argument> args, llvm::ArrayRef<std::pair<std::string, Argument>> kwargs,
       ValueId state);

  bool failed() const { return failed_; }
  void fail() { failed_ = true; }
  /// Makes the import fail, with an error at the node: what the call asks for cannot be had, and
  /// nothing could execute it as an opaque op either.
  void refuse(const llvm::Twine &message);

  //===--- Arguments ------------------------------------------------------===//

  /// How many elements the recorded result has.
  unsigned numElements() const { return lowering_.elements(node_).size(); }
  /// True if not given, or None.
  bool isAbsent(llvm::StringRef parameter);
  ValueId tensor(llvm::StringRef parameter);
  /// Invalid when absent.
  ValueId optionalTensor(llvm::StringRef parameter);
  /// All parameters, in their order: tensors, or invalid where absent.
  llvm::SmallVector<ValueId, 4> allTensors();
  /// A list of tensors, none absent.
  llvm::SmallVector<ValueId, 4> tensors(llvm::StringRef parameter);
  /// The same, where None leaves one out.
  llvm::SmallVector<ValueId, 4> optionalTensors(llvm::StringRef parameter);
  /// A tensor or scalar, or a number: exactly one of the two is set.
  std::pair<ValueId, std::optional<Attribute>> operandOrNumber(llvm::StringRef parameter);
  /// A number of whatever kind (bool, int, float), which is kept.
  Attribute number(llvm::StringRef parameter);
  std::optional<Attribute> optionalNumber(llvm::StringRef parameter);
  int64_t integer(llvm::StringRef parameter);
  int64_t integer(llvm::StringRef parameter, int64_t ifAbsent);
  bool boolean(llvm::StringRef parameter, bool ifAbsent = false);
  /// A list of integers, or one integer, which counts as a list of one.
  llvm::SmallVector<int64_t, 4> integers(llvm::StringRef parameter);
  /// Empty when absent.
  Attribute::List booleans(llvm::StringRef parameter);
  std::optional<DType> dtype(llvm::StringRef parameter);
  std::optional<Device> device(llvm::StringRef parameter);
  /// The name of something of Python's, `torch.strided`; empty when absent.
  llvm::StringRef name(llvm::StringRef parameter);
  llvm::StringRef string(llvm::StringRef parameter, llvm::StringRef ifAbsent);
  /// Where the seed comes from; null if it is an ordinary value or absent.
  const Attention *seed(llvm::StringRef parameter);
  /// The argument does not matter, whatever it is.
  void ignore(llvm::StringRef parameters);

  /// A dimension, counted from the front, of a tensor of `rank` (0 counts as 1).
  int64_t dim(llvm::StringRef parameter, unsigned rank);
  int64_t dim(llvm::StringRef parameter, unsigned rank, int64_t ifAbsent);
  llvm::SmallVector<int64_t, 4> dims(llvm::StringRef parameter, unsigned rank);

  //===--- Types ----------------------------------------------------------===//

  /// That of a tensor; some type when `value` is invalid because the call failed.
  const TensorType &type(ValueId value) const;
  /// That recorded for the result, or for an element of it; null if it is no tensor.
  const TensorType *recorded(unsigned element = 0) const;
  /// All sizes are numbers, as they are in what was recorded.
  llvm::SmallVector<int64_t, 4> shape(ValueId value) const;

  //===--- Ops ------------------------------------------------------------===//

  const Node &node() const { return node_; }
  GraphLowering &lowering() { return lowering_; }
  /// Takes `count` random numbers: the state to draw from and the offset of the first.
  std::pair<ValueId, int64_t> draw(Device device, int64_t count);
  /// Emits an op between, with one result of an inferred type.
  ValueId emitValue(llvm::StringRef core, llvm::ArrayRef<ValueId> operands,
                    AttributeInits attributes);
  /// Emits the op that gives the results of the call. Result i has the type of the recorded element
  /// `elements[i]`, or of element i without `elements`. Elements that no result gives are bound to
  /// `seed`.
  void emit(llvm::StringRef core, llvm::ArrayRef<ValueId> operands, AttributeInits attributes = {},
            std::optional<llvm::ArrayRef<unsigned>> elements = std::nullopt,
            const Attention *seed = nullptr);
  /// Takes back what was emitted.
  void undo();

  //===--- Ops that write their operands ------------------------------------===//

  /// Is it ATen's form that writes its arguments, rather than one that gives their new values? The
  /// latter gives a tuple.
  bool isInPlace() const;
  /// Of a result that is a tuple: the number, among all elements, of element `i` of its list
  /// `list`; nothing if nothing takes that list. Fails if the list has no such element.
  std::optional<unsigned> listElement(unsigned list, unsigned i);
  /// A name of what element `i` of `parameter` (or the parameter itself) holds that an op may
  /// write: the element; or, where it is still needed as it is, a copy. `element`: that of the
  /// result, which gives the new value; nothing where nothing takes it.
  ValueId writable(llvm::StringRef parameter, unsigned i, std::optional<unsigned> element);
  /// After `writable`: `newValue` is the new name of it.
  void written(llvm::StringRef parameter, unsigned i, std::optional<unsigned> element,
               ValueId newValue);
  /// Emits an op that writes some operands. Result i has the type of operand `renamed[i]`, where
  /// that is there; they are what comes back.
  llvm::SmallVector<ValueId, 4> emitUpdate(llvm::StringRef core, llvm::ArrayRef<ValueId> operands,
                                           AttributeInits attributes,
                                           llvm::ArrayRef<unsigned> renamed);
  /// Ends a call that emitted updates: from now on values are those that were written. Its result,
  /// if it is no tuple, is `result`, or None.
  void finishUpdates(ValueId result = {});

private:
  const Argument *elementOf(llvm::StringRef parameter, unsigned i);
  struct Parameter {
    llvm::StringRef name;
    const Argument *argument;
    bool isRead;
  };
  /// Null when absent or None. A reference to a literal counts as that literal.
  const Argument *find(llvm::StringRef parameter);
  const Argument &require(llvm::StringRef parameter);
  const Attribute *literal(const Argument &argument) const;
  bool allRead() const;
  OpId create(const OpSpec &spec, llvm::ArrayRef<ValueId> operands, AttributeInits attributes,
              llvm::ArrayRef<Type> types);
  llvm::SmallVector<Type, 4> infer(const OpSpec &spec, llvm::ArrayRef<ValueId> operands,
                                   AttributeInits attributes) const;

  GraphLowering &lowering_;
  const Node &node_;
  llvm::SmallVector<Parameter, 12> parameters_;
  ValueId state_;
  bool failed_ = false;
  llvm::SmallVector<OpId, 2> emitted_;
  struct Update {
    const Argument *argument;
    std::optional<unsigned> element;
    ValueId newValue;
  };
  std::vector<Update> updates_;
  llvm::DenseSet<const Argument *> writtenInPlace_; // of a form that gives new values
  Argument noArgument_; // stands for an argument that had to be there
  TensorType noType_;
};

} // namespace rondo::fx
