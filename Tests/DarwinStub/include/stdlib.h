#ifndef STUB_STDLIB_H
#define STUB_STDLIB_H
#include <sys/types.h>
void *malloc(size_t count);
void *calloc(size_t number, size_t count);
void *realloc(void *memory, size_t count);
void free(void *memory);
char *getenv(const char *name);
const char *getprogname(void);
char *realpath(const char *restrict path, char *restrict resolved);
long double strtold(const char *restrict text, char **restrict end);
double strtod(const char *restrict text, char **restrict end);
void exit(int status) __attribute__((noreturn));
void abort(void) __attribute__((noreturn));
#endif
