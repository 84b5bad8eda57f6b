//===- PatchTable.cpp - Which words of a graph come from the call ---------===//

#include "PatchTable.h"

#include "rondo/executors/DeviceError.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"

#include <cstring>

using namespace rondo;

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

void PatchTable::Node::read(const GraphNodeParameters &from) {
  parameters = from;
  if (from.kind == GraphNodeKind::Kernel) {
    words.assign(from.kernel.parameters.begin(), from.kernel.parameters.end());
    parameters.kernel.parameters = {};
    return;
  }
  const void *addresses[2] = {from.destination, from.source};
  words.resize(sizeof(addresses));
  std::memcpy(words.data(), addresses, sizeof(addresses));
}

/// Borrows `words`.
GraphNodeParameters PatchTable::Node::written() const {
  GraphNodeParameters result = parameters;
  if (result.kind == GraphNodeKind::Kernel) {
    result.kernel.parameters = words;
    return result;
  }
  void *addresses[2];
  std::memcpy(addresses, words.data(), sizeof(addresses));
  result.destination = addresses[0];
  result.source = addresses[1];
  return result;
}

bool PatchTable::Node::isAlike(const Node &other, size_t maxBytes) const {
  const GraphNodeParameters &a = parameters, &b = other.parameters;
  return a.kind == b.kind && words.size() == other.words.size() &&
         std::min(a.bytes, maxBytes) == b.bytes && a.value == b.value &&
         a.kernel.function == b.kernel.function && a.kernel.grid == b.kernel.grid &&
         a.kernel.block == b.kernel.block && a.kernel.sharedBytes == b.kernel.sharedBytes;
}

//===----------------------------------------------------------------------===//
// Explaining
//===----------------------------------------------------------------------===//

static uint64_t wordAt(llvm::ArrayRef<std::byte> words, size_t offset) {
  uint64_t word = 0;
  std::memcpy(&word, words.data() + offset, std::min<size_t>(sizeof(word), words.size() - offset));
  return word;
}

/// The bits of a double, rounded to f32.
static uint32_t floatBits(uint64_t value) {
  return llvm::bit_cast<uint32_t>(float(llvm::bit_cast<double>(value)));
}

class PatchTable::Explainer {
public:
  explicit Explainer(const PatchProbe &probe) : probe_(probe) {}

  llvm::Expected<PatchTable> run() {
    table_.sources_.resize(probe_.sources.size());
    if (!indexChanges())
      return std::move(table_);
    size_t numNodes = probe_.graphs[0]->numNodes();
    for (Graph *graph : {probe_.graphs[1], probe_.graphs[2], probe_.control})
      if (graph && graph->numNodes() != numNodes) {
        refuseAll("what is submitted depends on it");
        return std::move(table_);
      }
    for (size_t i = 0; i < numNodes; ++i)
      if (!std::binary_search(probe_.excluded.begin(), probe_.excluded.end(), GraphNodeId(i)))
        if (llvm::Error error = explain(GraphNodeId(i)))
          return error;
    return std::move(table_);
  }

private:
  using Values = std::array<uint64_t, 3>;
  using Changes = std::pair<uint64_t, uint64_t>;

  static Changes changesOf(const Values &values) {
    return {values[1] - values[0], values[2] - values[0]};
  }

  /// False if two sources changed alike: then no word could be told apart.
  bool indexChanges() {
    for (unsigned i = 0; i < probe_.sources.size(); ++i) {
      Changes changes = changesOf(probe_.sources[i].values);
      if (changes.first == 0 || changes.second == 0 || changes.first == changes.second ||
          !byChanges_.try_emplace(changes, i).second) {
        refuseAll("probes that cannot be told apart");
        return false;
      }
    }
    return true;
  }

  llvm::Error explain(GraphNodeId id) {
    Node own;
    std::array<Node, 3> nodes;
    llvm::Expected<bool> isRead = read(id, own, nodes);
    if (!isRead || !*isRead)
      return isRead.takeError();
    for (unsigned i = 0; i < 3; ++i)
      if (!own.isAlike(nodes[i], i == 0 ? ~size_t(0) : probe_.maxBytes)) {
        refuse(id, "the kernel that runs depends on it");
        return llvm::Error::success();
      }
    llvm::SmallVector<std::pair<unsigned, Word>, 8> found;
    size_t size = own.words.size();
    for (size_t offset = 0; offset < size; offset += sizeof(uint64_t)) {
      uint64_t noise = noisyHalves(wordAt(own.words, offset) ^ wordAt(nodes[0].words, offset));
      Values values;
      for (unsigned i = 0; i < 3; ++i)
        values[i] = wordAt(nodes[i].words, offset) & ~noise;
      if (changesOf(values) == Changes(0, 0))
        continue;
      Word word{uint32_t(table_.nodes_.size()), uint32_t(offset), Form::Whole, 0};
      std::optional<unsigned> source = sourceOf(values, word);
      bool isWhole = word.form == Form::Whole && noise == 0;
      bool isHalf = word.form != Form::Whole && ((noise & halfOf(word.form)) == 0);
      if (!source || !(isWhole || isHalf) || offset + sizeof(uint64_t) > size) {
        refuse(id, "a parameter of a kernel is computed from it");
        return llvm::Error::success();
      }
      found.push_back({*source, word});
    }
    for (const auto &[source, word] : found)
      table_.sources_[source].words.push_back(word);
    if (!found.empty())
      table_.nodes_.push_back(std::move(own));
    return llvm::Error::success();
  }

  /// Reads the node in the first graph, and in those that are compared. False if it cannot be read,
  /// for which it is refused.
  llvm::Expected<bool> read(GraphNodeId id, Node &own, std::array<Node, 3> &nodes) {
    auto readFrom = [&](Graph &graph, Node &node) -> llvm::Error {
      llvm::Expected<GraphNodeParameters> parameters = graph.parameters(id);
      if (!parameters)
        return parameters.takeError();
      node.read(*parameters);
      return llvm::Error::success();
    };
    llvm::Error error = readFrom(*probe_.graphs[0], own);
    own.id = id;
    for (unsigned i = 0; !error && i < 3; ++i)
      error = readFrom(i == 0 && probe_.control ? *probe_.control : *probe_.graphs[i], nodes[i]);
    if (!error)
      return true;
    if (deviceErrorKind(error) != DeviceErrorKind::InvalidArgument)
      return error;
    refuse(id, llvm::toString(std::move(error)));
    return false;
  }

  static uint64_t halfOf(Form form) {
    return form == Form::HighFloat ? ~uint64_t(0) << 32 : ~uint64_t(0) >> 32;
  }

  /// Each half of which a bit is set, whole: what differs in a few bytes, such as a pointer into
  /// the host's memory, may differ in others the next time.
  static uint64_t noisyHalves(uint64_t difference) {
    uint64_t result = 0;
    for (Form half : {Form::LowFloat, Form::HighFloat})
      if (difference & halfOf(half))
        result |= halfOf(half);
    return result;
  }

  /// The one source that a word with these values comes from, and how.
  std::optional<unsigned> sourceOf(const Values &values, Word &word) const {
    if (auto found = byChanges_.find(changesOf(values)); found != byChanges_.end()) {
      word.addend = values[0] - probe_.sources[found->second].values[0];
      bool isAddress = probe_.sources[found->second].kind == PatchSource::Address;
      return isAddress || word.addend == 0 ? std::optional<unsigned>(found->second) : std::nullopt;
    }
    std::optional<unsigned> source;
    for (unsigned i = 0; i < probe_.sources.size(); ++i)
      for (Form form : {Form::LowFloat, Form::HighFloat})
        if (isFloatOf(probe_.sources[i], values, form)) {
          if (source)
            return std::nullopt;
          source = i;
          word.form = form;
        }
    return source;
  }

  /// Is one half of the word the source in f32, and the other the same in all graphs?
  static bool isFloatOf(const PatchSource &source, const Values &values, Form form) {
    if (source.kind != PatchSource::Double)
      return false;
    unsigned shift = form == Form::HighFloat ? 32 : 0;
    for (unsigned i = 0; i < 3; ++i)
      if (uint32_t(values[i] >> shift) != floatBits(source.values[i]) ||
          uint32_t(values[i] >> (32 - shift)) != uint32_t(values[0] >> (32 - shift)))
        return false;
    return true;
  }

  void refuse(GraphNodeId node, llvm::StringRef problem) {
    probe_.uses(node, [&](unsigned source) { table_.refuse(source, problem); });
  }

  void refuseAll(llvm::StringRef problem) {
    for (unsigned i = 0; i < table_.sources_.size(); ++i)
      table_.refuse(i, problem);
  }

  const PatchProbe &probe_;
  PatchTable table_;
  llvm::DenseMap<Changes, unsigned> byChanges_;
};

llvm::Expected<PatchTable> PatchTable::explain(const PatchProbe &probe) {
  return Explainer(probe).run();
}

//===----------------------------------------------------------------------===//
// Patching
//===----------------------------------------------------------------------===//

size_t PatchTable::numNodes(unsigned source) const {
  size_t count = 0;
  const std::vector<Word> &words = sources_[source].words; // in order of nodes
  for (size_t i = 0; i < words.size(); ++i)
    count += i == 0 || words[i].node != words[i - 1].node;
  return count;
}

llvm::Expected<size_t> PatchTable::patch(GraphExec &exec, llvm::ArrayRef<Change> changes) {
  changed_.clear();
  for (const Change &change : changes) {
    assert(problem(change.source).empty() && "a source that cannot be patched");
    for (const Word &word : sources_[change.source].words) {
      Node &node = nodes_[word.node];
      std::byte *at = node.words.data() + word.offset;
      if (word.form == Form::Whole) {
        uint64_t value = change.value + word.addend;
        std::memcpy(at, &value, sizeof(value));
      } else {
        uint32_t value = floatBits(change.value);
        std::memcpy(at + (word.form == Form::HighFloat ? sizeof(value) : 0), &value, sizeof(value));
      }
      if (!std::exchange(node.isChanged, true))
        changed_.push_back(word.node);
    }
  }
  llvm::Error error = llvm::Error::success();
  for (uint32_t i : changed_) {
    nodes_[i].isChanged = false;
    if (!error)
      error = exec.set(nodes_[i].id, nodes_[i].written());
  }
  if (error)
    return error;
  return changed_.size();
}
