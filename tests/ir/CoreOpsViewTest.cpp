//===- CoreOpsViewTest.cpp - Other names for a tensor's storage -----------===//

#include "CoreOpsCases.h"

using namespace rondo;
using namespace rondo::test;

static std::vector<Use> reshapeUses() {
  const Dim s = Dim::symbol("S");
  const auto shape = [](List sizes) {
    return std::vector<std::pair<std::string, Attribute>>{{"shape", std::move(sizes)}};
  };
  return {
      {"splits a dimension", "reshape", {"f32[8, 6]"}, shape({8, 2, 3}), "-> f32[8, 2, 3]"},
      {"joins dimensions",
       "reshape",
       {"f32[2, 4, 6]@cuda:0"},
       shape({8, -1}),
       "-> f32[8, 6]@cuda:0"},
      {"joins within a chunk of a strided tensor",
       "reshape",
       {"f32[4, 2, 3; 12, 3, 1]"},
       shape({4, 6}),
       "-> f32[4, 6; 12, 1]"},
      {"splits a strided dimension",
       "reshape",
       {"f32[8, 6; 1, 8]"},
       shape({2, 4, 6}),
       "-> f32[2, 4, 6; 4, 1, 8]"},
      {"joins no dimensions that lie apart",
       "reshape",
       {"f32[8, 6; 1, 8]"},
       shape({48}),
       "expects operand 'x' whose strides allow a view of shape [48], got f32[8, 6; 1, 8]"},
      {"does not straddle chunks",
       "reshape",
       {"f32[4, 6; 12, 1]"},
       shape({3, 8}),
       "expects operand 'x' whose strides allow a view of shape [3, 8], got f32[4, 6; 12, 1]"},
      {"keeps the strides of the same shape",
       "reshape",
       {"f32[4, 6; 100, 7]"},
       shape({4, 6}),
       "-> f32[4, 6; 100, 7]"},
      {"joins a size of 1 whatever its stride",
       "reshape",
       {"f32[1, 4; 99, 2]"},
       shape({4}),
       "-> f32[4; 2]"},
      {"adds sizes of 1", "reshape", {"f32[4; 2]"}, shape({1, 4, 1}), "-> f32[1, 4, 1; 8, 2, 2]"},
      {"joins expanded dimensions", "reshape", {"f32[2, 3; 0, 0]"}, shape({6}), "-> f32[6; 0]"},
      {"takes a 0-d tensor", "reshape", {"f32[]"}, shape({1, -1}), "-> f32[1, 1]"},
      {"gives a 0-d tensor", "reshape", {"f32[1, 1]"}, shape({}), "-> f32[]"},
      {"takes a tensor without elements",
       "reshape",
       {"f32[0, 6; 1, 50]"},
       shape({3, 0}),
       "-> f32[3, 0]"},
      {"finds no size where any would do",
       "reshape",
       {"f32[0, 6]"},
       shape({0, -1}),
       "expects attribute 'shape' of 0 elements, got [0, -1]"},
      {"keeps the number of elements",
       "reshape",
       {"f32[8, 6]"},
       shape({7, 7}),
       "expects attribute 'shape' of 48 elements, got [7, 7]"},
      {"leaves one size open",
       "reshape",
       {"f32[8, 6]"},
       shape({-1, -1}),
       "expects attribute 'shape' to hold sizes of at least 0 and at most one -1, got [-1, -1]"},
      {"joins symbolic dimensions",
       "reshape",
       {"f32[B, S, 8]"},
       shape({Dim::symbol("B") * s, 8}),
       "-> f32[B*S, 8]"},
      {"finds a symbolic size", "reshape", {"f32[B, S, 8]"}, shape({-1, 4}), "-> f32[2*B*S, 4]"},
      {"splits a symbolic dimension",
       "reshape",
       {"f32[B, 3*S; 6*S, 2]"},
       shape({Dim::symbol("B"), s, 3}),
       "-> f32[B, S, 3; 6*S, 6, 2]"},
      {"proves that symbolic sizes agree",
       "reshape",
       {"f32[B, 8]"},
       shape({s, 8}),
       "expects attribute 'shape' of 8*B elements, got [S, 8]"},
      {"divides no symbol",
       "reshape",
       {"f32[S]"},
       shape({2, -1}),
       "expects attribute 'shape' of S elements, got [2, -1]"},
  };
}

static std::vector<Use> dimensionUses() {
  return {
      {"moves strides along",
       "permute",
       {"f32[2, 3, S]"},
       {{"dims", List{2, 0, -2}}},
       "-> f32[S, 2, 3; 1, 3*S, S]"},
      {"names every dimension",
       "permute",
       {"f32[2, 3]"},
       {{"dims", List{1}}},
       "expects attribute 'dims' of length 2, got [1]"},
      {"repeats sizes of 1 with stride 0",
       "expand",
       {"f32[3, 1]"},
       {{"shape", List{3, 4}}},
       "-> f32[3, 4; 1, 0]"},
      {"keeps a size for -1",
       "expand",
       {"f32[S, 1]"},
       {{"shape", List{-1, 4}}},
       "-> f32[S, 4; 1, 0]"},
      {"adds dimensions in front",
       "expand",
       {"f32[3]"},
       {{"shape", List{2, 1, 3}}},
       "-> f32[2, 1, 3; 0, 3, 1]"},
      {"repeats a 0-d tensor", "expand", {"f32[]"}, {{"shape", List{2, 1}}}, "-> f32[2, 1; 0, 1]"},
      {"repeats up to a symbolic size",
       "expand",
       {"f32[1]"},
       {{"shape", List{Dim::symbol("S")}}},
       "-> f32[S; 0]"},
      {"repeats sizes of 1 only",
       "expand",
       {"f32[3]"},
       {{"shape", List{4}}},
       "expects operand 'x' to expand to shape [4], got f32[3]"},
      {"keeps no size of a new dimension",
       "expand",
       {"f32[3]"},
       {{"shape", List{-1, 3}}},
       "expects attribute 'shape' to hold sizes of at least 0, or -1 to keep one, got [-1, 3]"},
      {"drops no dimension",
       "expand",
       {"f32[1, 3]"},
       {{"shape", List{3}}},
       "expects attribute 'shape' of length 2 or more, got [3]"},
      {"drops those of size 1",
       "squeeze",
       {"f32[1, 3, 1; 7, 2, 5]"},
       {{"dims", List{0, -1}}},
       "-> f32[3; 2]"},
      {"keeps those of other sizes",
       "squeeze",
       {"f32[2, S]"},
       {{"dims", List{0, 1}}},
       "-> f32[2, S]"},
      {"has the dims it names",
       "squeeze",
       {"f32[1]"},
       {{"dims", List{1}}},
       "expects attribute 'dims' to hold dimensions in [-1, 0], got [1]"},
      {"steps over what it holds",
       "unsqueeze",
       {"f32[2, S; 1, 2]"},
       {{"dim", 0}},
       "-> f32[1, 2, S; 2, 1, 2]"},
      {"steps by 1 at the end",
       "unsqueeze",
       {"f32[2, 3; 7, 2]"},
       {{"dim", -1}},
       "-> f32[2, 3, 1; 7, 2, 1]"},
      {"adds a dimension next to others",
       "unsqueeze",
       {"f32[2]"},
       {{"dim", 2}},
       "expects attribute 'dim' to be in [-2, 1], got 2"},
      {"keeps everything", "detach", {"f32[2, 3; 1, 9]@cuda:0"}, {}, "-> f32[2, 3; 1, 9]@cuda:0"},
      {"takes a tensor",
       "detach",
       {"f64"},
       {},
       "'detach' op operand #0 (x) has type f64, expected tensor"},
      {"has the strides given",
       "as_strided",
       {"f32[100]"},
       {{"shape", List{2, 3}}, {"strides", List{1, 0}}, {"offset", 7}},
       "-> f32[2, 3; 1, 0]"},
      {"has a stride for each size",
       "as_strided",
       {"f32[100]"},
       {{"shape", List{2, 3}}, {"strides", List{1}}},
       "expects attributes 'shape' and 'strides' of equal length, got [2, 3] and [1]"},
      {"does not go back",
       "as_strided",
       {"f32[100]"},
       {{"shape", List{2}}, {"strides", List{-1}}},
       "expects attribute 'strides' to hold sizes of at least 0, got [-1]"},
  };
}

static std::vector<Use> partUses() {
  const Dim s = Dim::symbol("S");
  return {
      {"counts from the end and clamps",
       "slice",
       {"f32[8, 3]"},
       {{"dim", 0}, {"start", -6}, {"end", 100}},
       "-> f32[6, 3]"},
      {"steps",
       "slice",
       {"f32[8, 7]"},
       {{"dim", 1}, {"start", 1}, {"step", 3}},
       "-> f32[8, 2; 7, 3]"},
      {"is empty when the end is first",
       "slice",
       {"f32[8]"},
       {{"start", 5}, {"end", 2}},
       "-> f32[0]"},
      {"keeps a symbolic size", "slice", {"f32[S, 4]"}, {{"dim", 0}}, "-> f32[S, 4]"},
      {"drops from a symbolic size",
       "slice",
       {"f32[S]"},
       {{"start", 1}, {"end", -1}},
       "-> f32[S-2]"},
      {"ends at a symbol", "slice", {"f32[64, 4]"}, {{"dim", 0}, {"end", s}}, "-> f32[S, 4]"},
      {"divides no symbol",
       "slice",
       {"f32[S]"},
       {{"step", 2}},
       "expects attribute 'step' to divide the symbolic length S, got 2"},
      {"steps forward",
       "slice",
       {"f32[8]"},
       {{"step", -1}},
       "expects attribute 'step' of at least 1, got -1"},
      {"has a dimension to slice",
       "slice",
       {"f32[]"},
       {},
       "expects operand 'x' of rank 1 or more, got f32[]"},
      {"drops the dimension",
       "select",
       {"f32[2, 3, 4]"},
       {{"dim", 1}, {"index", -3}},
       "-> f32[2, 4; 12, 1]"},
      {"takes a symbolic size to be large enough",
       "select",
       {"f32[S, 4]"},
       {{"dim", 0}, {"index", 5}},
       "-> f32[4]"},
      {"is in range",
       "select",
       {"f32[2, 3]"},
       {{"dim", 1}, {"index", 3}},
       "expects attribute 'index' in range for size 3, got 3"},
      {"is in range from the end",
       "select",
       {"f32[2, 3]"},
       {{"dim", 1}, {"index", -4}},
       "expects attribute 'index' in range for size 3, got -4"},
      {"takes the diagonal last",
       "diagonal",
       {"f32[5, 3, 4]"},
       {{"dim1", 0}, {"dim2", 2}},
       "-> f32[3, 4; 4, 13]"},
      {"starts above", "diagonal", {"f32[3, 5]"}, {{"offset", 3}}, "-> f32[2; 6]"},
      {"starts below", "diagonal", {"f32[3, 5]"}, {{"offset", -2}}, "-> f32[1; 6]"},
      {"is empty beyond the corner", "diagonal", {"f32[3, 5]"}, {{"offset", -9}}, "-> f32[0; 6]"},
      {"is square when symbolic", "diagonal", {"f32[S, S]"}, {}, "-> f32[S; S+1]"},
      {"compares no symbols",
       "diagonal",
       {"f32[S, 4]"},
       {},
       "expects offset 0 and equal sizes for a diagonal of symbolic sizes, got offset 0 and sizes "
       "S and 4"},
      {"has two dimensions",
       "diagonal",
       {"f32[4, 4]"},
       {{"dim2", -2}},
       "expects attributes 'dim1' and 'dim2' to differ, got 0 twice"},
      {"keeps the strides",
       "split",
       {"f32[2, 6]"},
       {{"sizes", List{1, 5}}, {"dim", 1}},
       "-> f32[2, 1; 6, 1] f32[2, 5; 6, 1]"},
      {"splits a symbolic size",
       "split",
       {"f32[3*S]"},
       {{"sizes", List{s, s + s}}},
       "-> f32[S] f32[2*S]"},
      {"uses up the dimension",
       "split",
       {"f32[6]"},
       {{"sizes", List{1, 4}}},
       "expects attribute 'sizes' to add up to 6, got [1, 4]"},
      {"drops the dimension", "unbind", {"f32[3, 2]"}, {{"dim", 1}}, "-> f32[3; 2] f32[3; 2]"},
      {"gives nothing of nothing", "unbind", {"f32[0, 2]"}, {}, "->"},
      {"knows how many",
       "unbind",
       {"f32[S]"},
       {},
       "expects a constant size of at most 65536, got S"},
      {"does not fill memory",
       "unbind",
       {"f32[1000000000000]"},
       {},
       "expects a constant size of at most 65536, got 1000000000000"},
  };
}

std::vector<Use> rondo::test::viewUses() {
  std::vector<Use> uses = reshapeUses();
  for (const std::vector<Use> &more : {dimensionUses(), partUses()})
    uses.insert(uses.end(), more.begin(), more.end());
  return uses;
}

namespace {

/// Views have the shapes and strides that their table says.
TEST(CoreOpsView, Uses) {
  expectOutcomes(viewUses());
}

/// Every view by reshape of every permuted and sliced small tensor reads the elements in row-major
/// order, and what is refused has no strides that would.
TEST(CoreOpsView, ReshapeAgreesWithCounting) {
  const std::vector<std::vector<int64_t>> shapes = {
      {12}, {2, 6}, {6, 2}, {3, 4}, {4, 3}, {2, 2, 3}, {3, 2, 2}, {2, 3, 2}, {1, 12}, {3, 1, 4}};
  auto offsets = [](const TensorType &type) {
    std::vector<int64_t> result = {0};
    for (unsigned d = 0; d < type.rank(); ++d) {
      std::vector<int64_t> next;
      for (int64_t base : result)
        for (int64_t i = 0; i < type.shape[d].value(); ++i)
          next.push_back(base + i * type.strides[d].value());
      result = std::move(next);
    }
    return result;
  };
  unsigned views = 0, refusals = 0;
  for (const auto &from : shapes)
    for (const auto &to : shapes)
      for (int64_t gap : {1, 2})
        for (bool transposed : {false, true}) {
          TensorType type(DType::F32, Dims(from.begin(), from.end()));
          for (unsigned d = 0; d < type.rank(); ++d)
            type.strides[d] = type.strides[d] * Dim(d + 1 == type.rank() ? 1 : gap);
          if (transposed)
            std::reverse(type.shape.begin(), type.shape.end()),
                std::reverse(type.strides.begin(), type.strides.end());
          Type operand(type);
          std::vector<NamedAttribute> attributes{{"shape", Attribute(llvm::ArrayRef<int64_t>(to))}};
          llvm::SmallVector<Type, 1> results;
          llvm::Error error = coreOps().lookup("reshape")->infer(
              OpContext(*coreOps().lookup("reshape"), {&operand}, attributes), results);
          std::vector<int64_t> wanted = offsets(type);
          if (!error) {
            ++views;
            EXPECT_EQ(offsets(*results[0].asTensor()), wanted) << operand.str();
            continue;
          }
          llvm::consumeError(std::move(error));
          ++refusals;
          // The only strides that could do are the distances between the elements that one step in
          // a dimension leads to.
          TensorType candidate(DType::F32, Dims(to.begin(), to.end()));
          for (unsigned d = 0; d < candidate.rank(); ++d) {
            size_t step = candidate.strides[d].value();
            candidate.strides[d] = step < wanted.size() ? wanted[step] - wanted[0] : 0;
          }
          EXPECT_NE(offsets(candidate), wanted) << operand.str();
        }
  EXPECT_GT(views, 100u);
  EXPECT_GT(refusals, 100u);
}

} // namespace
