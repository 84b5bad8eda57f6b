# Text-in, text-out tests: each file names in RUN lines what is run, in CHECK lines what must come
# out. Substitutions: rondo-opt, rondo-run, FileCheck, not, %data (tests/data), and lit's own %s, %t,
# %S, %T. Files in folders named Inputs are not tests.

import os

import lit.formats

config.name = "rondo"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".trace", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)

# A name is replaced where it stands as a command or after a space, never inside a path or a word.
def command(name):
    return r"(?<![\w./%-])" + name + r"(?![\w./-])"


for tool in ("rondo-opt", "rondo-run"):
    config.substitutions.append((command(tool), os.path.join(config.rondo_bin_dir, tool)))
config.substitutions.append((command("FileCheck"), config.rondo_filecheck))
config.substitutions.append((command("not"), config.rondo_not))
config.substitutions.append(("%data", config.rondo_data_dir))

# Sanitizers and coverage are steered by the environment, which lit does not pass on by itself.
for variable in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LLVM_PROFILE_FILE"):
    if variable in os.environ:
        config.environment[variable] = os.environ[variable]
