#ifndef STUB_STRING_H
#define STUB_STRING_H
#include <sys/types.h>
int memcmp(const void *one, const void *other, size_t count);
void *memchr(const void *bytes, int byte, size_t count);
void *memcpy(void *restrict target, const void *restrict source, size_t count);
void *memmove(void *target, const void *source, size_t count);
void *memset(void *bytes, int byte, size_t count);
void *memmem(const void *bytes, size_t count, const void *part, size_t part_count);
size_t strlen(const char *text);
size_t strcspn(const char *text, const char *characters);
char *strchr(const char *text, int character);
char *strerror(int number);
#endif
