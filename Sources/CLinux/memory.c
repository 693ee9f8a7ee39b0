#define _GNU_SOURCE
#include "CLinux.h"

#include <sys/mman.h>

void *clinux_map_memory(size_t byte_count) {
    int flags = MAP_PRIVATE | MAP_ANON;
#if defined(MAP_POPULATE)
    // To map pages one by one interrupts the other processors of the process.
    flags |= MAP_POPULATE;
#endif
    void *start = mmap(NULL, byte_count, PROT_READ | PROT_WRITE, flags, -1, 0);
    return start == MAP_FAILED ? NULL : start;
}

void clinux_unmap_memory(void *start, size_t byte_count) { munmap(start, byte_count); }
