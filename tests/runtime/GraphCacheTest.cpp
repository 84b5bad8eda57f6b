//===- GraphCacheTest.cpp - What is kept, and for how long ----------------===//

#include "ProgramTesting.h"

#include "GraphBuilder.h"

using namespace rondo;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

namespace {

GraphKey keyOf(uint64_t program, uint32_t region = 0) {
  GraphKey key;
  key.program = program;
  key.region = region;
  return key;
}
GraphEntryRef newEntry() {
  return std::make_shared<GraphEntry>();
}
/// One whose graph has so many nodes.
GraphEntryRef newEntry(DeviceAPI &device, unsigned numNodes) {
  GraphEntryRef entry = newEntry();
  entry->graph = cantFail(device.createGraph());
  for (unsigned i = 0; i < numNodes; ++i)
    cantFail(entry->graph->addEmpty({}));
  return entry;
}

} // namespace

//===----------------------------------------------------------------------===//
// The cache alone
//===----------------------------------------------------------------------===//

// A domain has one cache per device, made on first use; other domains have others.
TEST(GraphCacheTest, OnePerDomainAndDevice) {
  DeviceRef device = createHostDevice(), other = createHostDevice();
  CaptureDomainRef domain = CaptureDomain::create("a"), stranger = CaptureDomain::create("b");
  EXPECT_EQ(GraphCache::find(*domain, *device), nullptr);
  std::shared_ptr<GraphCache> cache = GraphCache::of(*domain, *device);
  EXPECT_EQ(GraphCache::of(*domain, *device), cache);
  EXPECT_EQ(GraphCache::find(*domain, *device), cache);
  EXPECT_EQ(GraphCache::find(*domain, *other), nullptr);
  EXPECT_NE(GraphCache::of(*domain, *other), cache);
  EXPECT_EQ(GraphCache::find(*stranger, *device), nullptr);
}

// Every member of the key counts.
TEST(GraphCacheTest, Keys) {
  GraphCache cache;
  GraphKey key = keyOf(1);
  key.scalars = {7};
  GraphEntryRef entry = newEntry();
  cache.insert(key, entry, 1);
  EXPECT_EQ(cache.lookup(key), entry);
  auto misses = [&](auto change) {
    GraphKey other = key;
    change(other);
    return cache.lookup(other) == nullptr;
  };
  EXPECT_TRUE(misses([](GraphKey &k) { k.program = 2; }));
  EXPECT_TRUE(misses([](GraphKey &k) { k.region = 1; }));
  EXPECT_TRUE(misses([](GraphKey &k) { k.lane = 1; }));
  EXPECT_TRUE(misses([](GraphKey &k) { k.slab = 1; }));
  EXPECT_TRUE(misses([](GraphKey &k) { k.results = 1; }));
  EXPECT_TRUE(misses([](GraphKey &k) { k.forwardResults = 1; }));
  EXPECT_TRUE(misses([](GraphKey &k) { k.scalars = {8}; }));
  EXPECT_TRUE(misses([](GraphKey &k) { k.scalars = {7, 7}; }));
  EXPECT_FALSE(misses([](GraphKey &) {}));
}

// Beyond the bound the entry goes that costs least for how often it was used; never the one that
// just came, and never the last one.
TEST(GraphCacheTest, EvictionOrder) {
  GraphCache cache;
  cache.setMaxEntries(3);
  GraphEntryRef hot = newEntry();
  cache.insert(keyOf(1), hot, 1.0); // cheap, used often
  cache.insert(keyOf(2), newEntry(), 3.0);
  cache.insert(keyOf(3), newEntry(), 2.0); // goes first
  hot->uses = 9;
  cache.insert(keyOf(4), newEntry(), 0.5);
  EXPECT_TRUE(cache.lookup(keyOf(1)));
  EXPECT_TRUE(cache.lookup(keyOf(2)));
  EXPECT_FALSE(cache.lookup(keyOf(3)));
  EXPECT_TRUE(cache.lookup(keyOf(4)));
  EXPECT_EQ(cache.counters().evictions, 1u);

  cache.setMaxEntries(0); // means 1
  EXPECT_EQ(cache.counters().entries, 1u);
  EXPECT_TRUE(cache.lookup(keyOf(1)));
  cache.insert(keyOf(5), newEntry(), 1e-9);
  EXPECT_TRUE(cache.lookup(keyOf(5)));
  EXPECT_FALSE(cache.lookup(keyOf(1)));
  EXPECT_EQ(cache.counters().evictions, 4u);
}

// Graphs are bounded by the memory of their execs, too: what goes is what costs least per byte for
// how often it was used, and as many as it takes. A graph beyond the bound stays until the next.
TEST(GraphCacheTest, Bytes) {
  DeviceRef device = createHostDevice();
  GraphCache cache;
  cache.insert(keyOf(1), newEntry(*device, 10), 1.0); // 0.1 a node
  uint64_t ten = cache.counters().bytes;
  EXPECT_GT(ten, 10 * 1024u);
  EXPECT_LT(ten, 10 * 4096u);
  cache.setMaxBytes(5 * ten);
  cache.insert(keyOf(2), newEntry(*device, 20), 1.0); // 0.05 a node
  cache.insert(keyOf(3), newEntry(*device, 10), 0.6); // 0.06 a node
  cache.insert(keyOf(4), newEntry(*device, 10), 0.2); // 0.02 a node
  EXPECT_EQ(cache.counters().bytes, 5 * ten);
  EXPECT_EQ(cache.counters().evictions, 0u);
  cache.insert(keyOf(5), newEntry(*device, 20), 0.01);
  EXPECT_TRUE(cache.lookup(keyOf(1)));
  EXPECT_FALSE(cache.lookup(keyOf(2)));
  EXPECT_TRUE(cache.lookup(keyOf(3)));
  EXPECT_FALSE(cache.lookup(keyOf(4)));
  EXPECT_EQ(cache.counters().bytes, 4 * ten);
  EXPECT_EQ(cache.counters().evictions, 2u);

  cache.insert(keyOf(5), newEntry(*device, 10), 0.01); // instead
  EXPECT_EQ(cache.counters().bytes, 3 * ten);
  cache.eraseIf([](const GraphKey &key) { return key.program == 3; });
  EXPECT_EQ(cache.counters().bytes, 2 * ten);

  cache.insert(keyOf(6), newEntry(*device, 100), 1.0);
  EXPECT_EQ(cache.counters().bytes, 10 * ten);
  EXPECT_EQ(cache.counters().entries, 1u);
  cache.insert(keyOf(7), newEntry(*device, 1), 1e-6);
  EXPECT_FALSE(cache.lookup(keyOf(6)));
  EXPECT_TRUE(cache.lookup(keyOf(7)));
  cache.setMaxBytes(0);
  EXPECT_EQ(cache.counters().bytes, 0u);
  EXPECT_EQ(cache.counters().entries, 0u);
}

// Each entry says what it is and was good for, the oldest first.
TEST(GraphCacheTest, Entries) {
  DeviceRef device = createHostDevice();
  GraphCache cache;
  EXPECT_THAT(cache.entries(), SizeIs(0));
  for (unsigned i = 1; i <= 20; ++i) {
    GraphEntryRef entry = newEntry(*device, i);
    entry->copiedBytes = 100 * i;
    cache.insert(keyOf(30 - i, i), entry, 0.5 * i);
    entry->uses = i;
  }
  cache.eraseIf([](const GraphKey &key) { return key.region == 3; });
  cache.insert(keyOf(29, 1), newEntry(*device, 1), 8); // is new again
  std::vector<EntryStatistics> entries = cache.entries();
  ASSERT_THAT(entries, SizeIs(19));
  for (unsigned i = 0; i < 18; ++i) {
    const EntryStatistics &entry = entries[i];
    unsigned number = i == 0 ? 2 : i + 3;
    EXPECT_EQ(entry.key, keyOf(30 - number, number));
    EXPECT_EQ(entry.numNodes, number);
    EXPECT_EQ(entry.bytes, number * entries[18].bytes);
    EXPECT_EQ(entry.uses, number + 1);
    EXPECT_EQ(entry.buildSeconds, 0.5 * number);
    EXPECT_EQ(entry.copiedBytes, 100 * number);
  }
  EXPECT_EQ(entries[18].key, keyOf(29, 1));
  EXPECT_EQ(entries[18].uses, 1u);
  EXPECT_EQ(entries[18].buildSeconds, 8);
}

// An entry can be asked for by its key, in whatever detail.
TEST(GraphCacheTest, ContainsIf) {
  GraphCache cache;
  cache.insert(keyOf(1, 5), newEntry(), 1);
  cache.insert(keyOf(2, 6), newEntry(), 1);
  EXPECT_TRUE(cache.containsIf([](const GraphKey &key) { return key.region == 6; }));
  EXPECT_FALSE(
      cache.containsIf([](const GraphKey &key) { return key.program == 1 && key.region == 6; }));
}

// What was worth much long ago does not stay for ever.
TEST(GraphCacheTest, Ages) {
  GraphCache cache;
  cache.setMaxEntries(2);
  cache.insert(keyOf(1000), newEntry(), 10.0);
  unsigned inserted = 0;
  while (cache.lookup(keyOf(1000)) && inserted < 100)
    cache.insert(keyOf(inserted++), newEntry(), 1.0);
  EXPECT_GT(inserted, 5u);
  EXPECT_LT(inserted, 20u);
}

// An entry for a key that has one takes its place, which is no eviction.
TEST(GraphCacheTest, Replaces) {
  GraphCache cache;
  cache.insert(keyOf(1), newEntry(), 1);
  GraphEntryRef second = newEntry();
  cache.insert(keyOf(1), second, 1);
  EXPECT_EQ(cache.lookup(keyOf(1)), second);
  CacheCounters counters = cache.counters();
  EXPECT_EQ(counters.entries, 1u);
  EXPECT_EQ(counters.captures, 2u);
  EXPECT_EQ(counters.evictions, 0u);
}

// Entries that match are dropped; reset drops all and forgets all; who uses an entry keeps it.
TEST(GraphCacheTest, EraseAndReset) {
  GraphCache cache;
  std::weak_ptr<GraphEntry> watched;
  {
    GraphEntryRef used = newEntry();
    watched = used;
    cache.insert(keyOf(1), used, 1);
    cache.insert(keyOf(2), newEntry(), 1);
    cache.insert(keyOf(2, 1), newEntry(), 1);
    cache.eraseIf([](const GraphKey &key) { return key.program == 2; });
    EXPECT_EQ(cache.counters().entries, 1u);
    cache.countReplay(100);
    cache.countReplay(11);
    cache.countEagerRun();
    cache.countFailure();
    cache.countRecapture();
    CacheCounters counters = cache.counters();
    EXPECT_EQ(counters.captures, 3u);
    EXPECT_EQ(counters.replays, 2u);
    EXPECT_EQ(counters.copiedBytes, 111u);
    EXPECT_EQ(counters.eagerRuns + counters.failures + counters.recaptures, 3u);
    cache.reset();
    counters = cache.counters();
    EXPECT_EQ(counters.entries + counters.captures + counters.replays + counters.copiedBytes +
                  counters.eagerRuns + counters.failures + counters.recaptures,
              0u);
    EXPECT_FALSE(watched.expired());
  }
  EXPECT_TRUE(watched.expired());
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

namespace {

class CachedProgramTest : public ProgramFixture {
protected:
  /// Compiles, and finds the cache of the program's regions.
  std::unique_ptr<Program> cached(llvm::StringRef text, llvm::StringRef pipeline = regionPipeline) {
    Pipeline usual = pipelineOf(pipeline.str(), host);
    ProgramOptions options = steadyOptions();
    options.checkGraphs = true;
    llvm::Expected<Program> program = compile(
        parse(text), device, &host,
        [&](TracePair pair, const SymbolBindings &b) {
          llvm::Expected<TracePair> result = usual(std::move(pair), b);
          if (result)
            forEachOp(result->forward(), [&](const Op &op) {
              if (op.domain())
                domain = CaptureDomainRef(op.domain());
            });
          return result;
        },
        options);
    if (!program) {
      ADD_FAILURE() << llvm::toString(program.takeError());
      return nullptr;
    }
    cache = GraphCache::find(*domain, *device);
    return std::make_unique<Program>(std::move(*program));
  }

  CaptureDomainRef domain;
  std::shared_ptr<GraphCache> cache;
};

} // namespace

// Every graph that is held can be looked at, and launched; entries without one are passed over.
TEST_F(CachedProgramTest, ForEachGraph) {
  std::unique_ptr<Program> program = cached(twoRegionsWithRate, copyingPipeline);
  ASSERT_TRUE(program);
  auto numNodes = [&] {
    std::vector<size_t> all;
    cache->forEachGraph([&](Graph &graph, GraphExec &exec) {
      all.push_back(graph.numNodes());
      EXPECT_EQ(exec.nativeHandle(), nullptr) << "it is the host's";
      cantFail(exec.launch(*stream));
    });
    llvm::sort(all);
    return all;
  };
  EXPECT_TRUE(numNodes().empty());
  std::vector<Value> inputs = {floats({1, 2}), Value(2.0)}; // the graphs copy from them
  forward(*program, inputs);
  EXPECT_THAT(numNodes(), ElementsAre(2, 4)) << "mul and neg; a copy of x, neg, add and sum";
  cache->insert(keyOf(~0u), newEntry(), 1);
  EXPECT_THAT(numNodes(), SizeIs(2));
}

// Counters say what happened: the first call of each region runs it, later ones replay.
TEST_F(CachedProgramTest, Counters) {
  auto program = cached(twoRegionsWithRate, copyingPipeline);
  ASSERT_TRUE(program);
  ASSERT_TRUE(cache);
  for (unsigned i = 0; i < 5; ++i)
    forward(*program, {floats({1, 2}), Value(0.5)});
  CacheCounters counters = program->counters();
  EXPECT_EQ(counters.entries, 2u);
  EXPECT_EQ(counters.captures, 2u);
  EXPECT_EQ(counters.eagerRuns, 2u);
  EXPECT_EQ(counters.replays, 8u);
  EXPECT_EQ(counters.copiedBytes, 4 * 8u);
  std::vector<EntryStatistics> graphs = program->graphs();
  ASSERT_THAT(graphs, SizeIs(2));
  EXPECT_EQ(graphs[0].numNodes, 4u) << "a copy of x, neg, add and sum";
  EXPECT_EQ(graphs[0].copiedBytes, 8u);
  EXPECT_EQ(graphs[1].numNodes, 2u) << "mul and neg";
  EXPECT_EQ(graphs[1].copiedBytes, 0u);
  for (const EntryStatistics &graph : graphs) {
    EXPECT_EQ(graph.uses, 5u);
    EXPECT_GT(graph.buildSeconds, 0);
  }
  EXPECT_EQ(counters.bytes, graphs[0].bytes + graphs[1].bytes);
  cache->reset();
  EXPECT_THAT(program->graphs(), SizeIs(0));
  for (unsigned i = 0; i < 2; ++i)
    forward(*program, {floats({1, 2}), Value(0.5)});
  EXPECT_EQ(program->counters().captures, 2u);
  EXPECT_EQ(program->counters().replays, 2u);
}

//===----------------------------------------------------------------------===//
// Out of memory
//===----------------------------------------------------------------------===//

namespace {

constexpr llvm::StringLiteral memoryHungry = R"(
pair @p {
  forward @fw(%x: f32[1024]) {
    %h: f32[1024] = exp(%x)
    %y: f32[1024] = neg(%h)
    return(%y, %h saved #0)
  }
  backward @bw(%g: f32[1024], %h: f32[1024] saved #0) {
    %d: f32[1024] = mul(%g, %h)
    return(%d)
  }
})";

class OutOfMemoryTest : public ProgramFixture {
protected:
  /// A device with so much memory, 0 for no limit, and a program on it.
  void begin(uint64_t limit) {
    program = nullptr;
    held.clear();
    device = createHostDevice({.memoryLimit = limit});
    stream = cantFail(device->createStream());
    program = compiled(memoryHungry);
    x = floats(std::vector<float>(1024, 0));
  }
  llvm::Error call(Stream &on, SavedState *saved = nullptr) {
    llvm::SmallVector<Value> results(1);
    llvm::Error error = program->forward(on, {x}, results, saved);
    EXPECT_EQ(results.size(), error ? 0u : 1u);
    for (const Value &value : results)
      EXPECT_EQ(valuesOf(value)[1023], -1);
    held.append(results.begin(), results.end());
    return error;
  }
  /// Leaves sets of results and slabs that nobody uses, and holds one result.
  void use() {
    SavedState first, second;
    for (SavedState *saved : {&first, &second, static_cast<SavedState *>(nullptr)})
      cantFail(call(*stream, saved));
    held.erase(held.begin(), held.begin() + 2);
  }

  std::unique_ptr<Program> program;
  Tensor x;
  llvm::SmallVector<Value> held;
};

} // namespace

// Where memory is out, what is idle is given back and the call tried again.
TEST_F(OutOfMemoryTest, TrimsAndRetries) {
  begin(0);
  use();
  uint64_t limit = device->memoryUse().bytes;
  begin(limit);
  use();
  ASSERT_EQ(device->memoryUse().bytes, limit);
  // Another stream takes no set of results that is this one's.
  std::unique_ptr<Stream> other = cantFail(device->createStream());
  EXPECT_EQ(llvm::toString(call(*other)), "");
  EXPECT_LT(device->memoryUse().bytes, limit);
  EXPECT_EQ(valuesOf(held[0])[0], -1) << "what is held stays";
  EXPECT_EQ(llvm::toString(call(*stream)), "");
  EXPECT_EQ(llvm::toString(call(*stream)), "");
}

// Where nothing is idle, the error says how many bytes were wanted, results are empty, and once
// memory is given back the next call works.
TEST_F(OutOfMemoryTest, SaysWhatItNeeds) {
  begin(0);
  use();
  begin(device->memoryUse().bytes);
  llvm::Error error = llvm::Error::success();
  SavedState states[8];
  unsigned calls = 0;
  while (!error && calls < 8) {
    error = call(*stream, &states[calls]);
    ++calls;
  }
  EXPECT_EQ(deviceErrorKind(error), DeviceErrorKind::OutOfMemory);
  EXPECT_FALSE(states[calls - 1].isValid());
  EXPECT_THAT(llvm::toString(std::move(error)),
              AllOf(HasSubstr("out of memory"), HasSubstr("4096 bytes"), HasSubstr("limit")));
  for (const Value &value : held)
    EXPECT_EQ(valuesOf(value)[5], -1);
  held.clear();
  for (SavedState &state : states)
    state = SavedState();
  for (unsigned i = 0; i < 3; ++i)
    EXPECT_EQ(llvm::toString(call(*stream)), "");
  EXPECT_GT(program->counters().captures, 0u);
}

// A program that finds no room for its first call works when there is room.
TEST_F(OutOfMemoryTest, FirstCall) {
  begin(20000);
  llvm::Expected<StorageRef> filler = Storage::allocate(device, 20000 - 4096 - 4096 - 100);
  ASSERT_TRUE(bool(filler)) << llvm::toString(filler.takeError());
  uint64_t before = device->memoryUse().bytes;
  llvm::Error error = call(*stream);
  EXPECT_EQ(deviceErrorKind(error), DeviceErrorKind::OutOfMemory);
  llvm::consumeError(std::move(error));
  program->trim();
  EXPECT_EQ(device->memoryUse().bytes, before);
  *filler = nullptr;
  EXPECT_EQ(llvm::toString(call(*stream)), "");
}
