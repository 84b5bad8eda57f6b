//===- PassPipelineParser.cpp - Pipelines as text ---------------------------===//
//
// Reads the grammar at the top of PassRegistry.h. The form of a pass (its name and options) is read
// first, then it is looked up and made, so that one error in a value does not hide those after it.
// An error of form ends the parse: what follows it would be guesswork.
//
//===----------------------------------------------------------------------===//

#include "rondo/passes/PassRegistry.h"

#include "PipelineText.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace rondo;

namespace {

struct OptionText {
  llvm::StringRef name;
  std::string value;
  size_t nameOffset = 0, valueOffset = 0;
};

struct PassText {
  llvm::StringRef name;
  size_t offset = 0;
  std::vector<OptionText> options;
};

class PipelineParser {
public:
  PipelineParser(const PassRegistry &registry, llvm::StringRef text)
      : registry_(registry), text_(text) {}

  llvm::Expected<std::vector<std::unique_ptr<Pass>>> run() {
    skipBlanks();
    bool isDone = atEnd();
    while (!isDone)
      isDone = !parsePass() || !parseComma();
    if (llvm::Error error = diagnostics_.takeError())
      return error;
    return std::move(passes_);
  }

private:
  //===--- Characters -----------------------------------------------------===//

  bool atEnd() const { return offset_ == text_.size(); }
  bool at(char c) const { return !atEnd() && text_[offset_] == c; }
  void skipBlanks() {
    while (!atEnd() && llvm::isSpace(text_[offset_]))
      ++offset_;
  }

  llvm::StringRef takeWhile(bool (*accepts)(char)) {
    llvm::StringRef taken = text_.drop_front(offset_).take_while(accepts);
    offset_ += taken.size();
    return taken;
  }

  /// What is at the current place, for a message.
  std::string here() const {
    if (atEnd())
      return "the end";
    char c = text_[offset_];
    return llvm::isPrint(c) ? std::string("'") + c + "'" : "byte 0x" + llvm::utohexstr(uint8_t(c));
  }

  Diagnostic &error(size_t offset, const llvm::Twine &message) {
    Diagnostic &diagnostic = diagnostics_.error(pipelineLocation(text_, offset), message);
    diagnostic.snippet = pipelineSnippet(text_, offset);
    return diagnostic;
  }

  bool fail(const llvm::Twine &message) {
    error(offset_, message);
    return false;
  }

  //===--- Form -----------------------------------------------------------===//

  /// Reads one element and makes its pass. False after an error of form.
  bool parsePass() {
    skipBlanks();
    PassText pass;
    pass.offset = offset_;
    pass.name = takeWhile(isPipelineNameChar);
    if (pass.name.empty())
      return fail("expected the name of a pass, got " + here());
    skipBlanks();
    if (at('{') && !parseOptions(pass))
      return false;
    makePass(pass);
    return !diagnostics_.isFull();
  }

  /// Reads the comma before another element. False at the end, or if there is something else.
  bool parseComma() {
    skipBlanks();
    if (atEnd())
      return false;
    if (!at(','))
      return fail("expected ',' or the end of the pipeline, got " + here());
    ++offset_;
    return true;
  }

  bool parseOptions(PassText &pass) {
    size_t open = offset_++;
    for (;;) {
      size_t before = offset_;
      skipBlanks();
      if (at('}')) {
        ++offset_;
        return true;
      }
      if (atEnd()) {
        error(open, "'{' of the options of pass '" + pass.name + "' is never closed");
        return false;
      }
      if (at(','))
        return fail("options are separated by white space, not by ','");
      if (!pass.options.empty() && before == offset_)
        return fail("expected white space or '}' after the value of option '" +
                    pass.options.back().name + "', got " + here());
      if (!parseOption(pass))
        return false;
    }
  }

  bool parseOption(PassText &pass) {
    OptionText option;
    option.nameOffset = offset_;
    option.name = takeWhile(isPipelineNameChar);
    if (option.name.empty())
      return fail("expected the name of an option or '}', got " + here());
    skipBlanks();
    if (!at('='))
      return fail("expected '=' and a value after option '" + option.name + "', got " + here());
    ++offset_;
    skipBlanks();
    option.valueOffset = offset_;
    if (at('"')) {
      if (!parseQuoted(option.value))
        return false;
    } else {
      option.value = takeWhile(isPipelineValueChar).str();
      if (option.value.empty())
        return fail("expected a value for option '" + option.name + "', got " + here());
    }
    pass.options.push_back(std::move(option));
    return true;
  }

  bool parseQuoted(std::string &value) {
    size_t open = offset_++;
    for (; !atEnd(); ++offset_) {
      char c = text_[offset_];
      if (c == '"') {
        ++offset_;
        return true;
      }
      if (c == '\\' && !parseEscape(c))
        return false;
      value += c;
    }
    error(open, "this quote is never closed");
    return false;
  }

  /// Reads the escape at the current place into `c`, and leaves the place at its last character.
  bool parseEscape(char &c) {
    llvm::StringRef rest = text_.drop_front(offset_ + 1);
    char kind = rest.empty() ? '\0' : rest.front();
    if (kind == '"' || kind == '\\' || kind == 'n' || kind == 't') {
      c = kind == 'n' ? '\n' : kind == 't' ? '\t' : kind;
      offset_ += 1;
      return true;
    }
    unsigned code;
    if (kind == 'x' && rest.size() >= 3 && llvm::isHexDigit(rest[1]) && llvm::isHexDigit(rest[2]) &&
        !rest.substr(1, 2).getAsInteger(16, code)) {
      c = char(code);
      offset_ += 3;
      return true;
    }
    return fail("unknown escape; known are \\\", \\\\, \\n, \\t and \\x with two hex digits");
  }

  //===--- Meaning --------------------------------------------------------===//

  void makePass(const PassText &text) {
    const PassInfo *info = registry_.lookup(text.name);
    if (!info) {
      reportUnknownPass(text);
      return;
    }
    PassOptions options;
    if (!takeOptions(text, *info, options))
      return;
    llvm::Expected<std::unique_ptr<Pass>> pass = info->create(options);
    if (!pass) {
      addError(pass.takeError(), text.offset);
      return;
    }
    passes_.push_back(std::move(*pass));
  }

  void reportUnknownPass(const PassText &text) {
    llvm::SmallVector<llvm::StringRef, 16> names;
    for (const PassInfo &info : registry_.passes())
      names.push_back(info.name);
    error(text.offset, "unknown pass '" + text.name + "'" + didYouMean(text.name, names))
        .note({},
              names.empty() ? "there are no passes" : "the passes are " + llvm::join(names, ", "));
  }

  bool takeOptions(const PassText &text, const PassInfo &info, PassOptions &options) {
    bool isFine = true;
    std::map<std::string, std::string> values;
    llvm::StringMap<size_t> firstOffsets;
    for (const OptionText &option : text.options) {
      auto [first, isNew] = firstOffsets.try_emplace(option.name, option.nameOffset);
      if (!isNew) {
        Diagnostic &duplicate =
            error(option.nameOffset, "option '" + option.name + "' is given twice");
        duplicate.note(pipelineLocation(text_, first->second), "first given here");
        duplicate.notes.back().snippet = pipelineSnippet(text_, first->second);
        isFine = false;
      } else if (!info.acceptsAnyOption && !isKnown(info, option.name)) {
        reportUnknownOption(option, info);
        isFine = false;
      }
      values[option.name.str()] = option.value;
    }
    options = PassOptions(std::move(values));
    for (const OptionText &option : text.options)
      options.setOrigin(option.name, pipelineLocation(text_, option.valueOffset),
                        pipelineSnippet(text_, option.valueOffset));
    return isFine;
  }

  static bool isKnown(const PassInfo &info, llvm::StringRef option) {
    return llvm::any_of(info.options, [&](const PassOptionInfo &o) { return o.name == option; });
  }

  void reportUnknownOption(const OptionText &option, const PassInfo &info) {
    llvm::SmallVector<llvm::StringRef, 8> names;
    for (const PassOptionInfo &known : info.options)
      names.push_back(known.name);
    error(option.nameOffset, "pass '" + info.name + "' has no option '" + option.name + "'" +
                                 didYouMean(option.name, names))
        .note({},
              names.empty() ? "it has no options" : "its options are " + llvm::join(names, ", "));
  }

  /// Adds what went wrong while a pass was made; what has no place gets that of the pass.
  void addError(llvm::Error failure, size_t offset) {
    llvm::handleAllErrors(
        std::move(failure),
        [&](const DiagnosticError &failed) {
          for (const Diagnostic &diagnostic : failed.diagnostics()) {
            Diagnostic &copy = error(offset, diagnostic.message);
            if (diagnostic.location.isKnown())
              copy = diagnostic;
            else
              copy.notes = diagnostic.notes;
          }
        },
        [&](const llvm::ErrorInfoBase &failed) { error(offset, failed.message()); });
  }

  const PassRegistry &registry_;
  llvm::StringRef text_;
  size_t offset_ = 0;
  DiagnosticList diagnostics_;
  std::vector<std::unique_ptr<Pass>> passes_;
};

} // namespace

llvm::Error PassRegistry::parsePipeline(llvm::StringRef pipeline, PassManager &manager) const {
  llvm::Expected<std::vector<std::unique_ptr<Pass>>> passes = PipelineParser(*this, pipeline).run();
  if (!passes)
    return passes.takeError();
  for (std::unique_ptr<Pass> &pass : *passes)
    manager.add(std::move(pass));
  return llvm::Error::success();
}
