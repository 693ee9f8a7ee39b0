#ifndef CFUZZER_H
#define CFUZZER_H

#include <stddef.h>
#include <stdint.h>

/// libFuzzer without its own main: https://llvm.org/docs/LibFuzzer.html#using-libfuzzer-as-a-library
int LLVMFuzzerRunDriver(int *argument_count, char ***arguments, int (*run)(const uint8_t *bytes, size_t count));

/// Removes a directory with everything in it.
void cfuzzer_remove(const char *path);

/// A file without a name; negative where there can be none.
int cfuzzer_memory_file(void);

#endif
