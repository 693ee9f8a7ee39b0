#define _GNU_SOURCE
#include "cfuzzer.h"
#include <ftw.h>
#include <stdio.h>
#include <sys/mman.h>

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place) {
    (void)status, (void)kind, (void)place;
    return remove(path);
}

void cfuzzer_remove(const char *path) { nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS); }

int cfuzzer_memory_file(void) { return memfd_create("fuzz", MFD_CLOEXEC); }
