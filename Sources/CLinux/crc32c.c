#include "CLinux.h"

#include <string.h>

// Eight bytes per instruction if the processor supports it (SSE 4.2, ARMv8 CRC), otherwise a table.

static uint32_t table[256];

__attribute__((constructor)) static void fill_table(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >> 1) ^ 0x82F63B78u : crc >> 1;
        table[i] = crc;
    }
}

static uint32_t by_table(uint32_t crc, const unsigned char *bytes, size_t count) {
    while (count--) crc = table[(crc ^ *bytes++) & 0xFF] ^ (crc >> 8);
    return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t by_instruction(
    uint32_t crc, const unsigned char *bytes, size_t count) {
    uint64_t wide = crc;
    for (; count >= 8; count -= 8, bytes += 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    crc = (uint32_t)wide;
    while (count--) crc = __builtin_ia32_crc32qi(crc, *bytes++);
    return crc;
}
static int has_instruction(void) { return __builtin_cpu_supports("sse4.2"); }
#else
static uint32_t by_instruction(uint32_t crc, const unsigned char *bytes, size_t count) {
    return by_table(crc, bytes, count);
}
static int has_instruction(void) { return 0; }
#endif

uint32_t clinux_crc32c(uint32_t crc, const void *bytes, size_t count) {
    crc = ~crc;
    crc = has_instruction() ? by_instruction(crc, bytes, count) : by_table(crc, bytes, count);
    return ~crc;
}
