// The compiler's own, and what the system adds.
#ifndef STUB_LIMITS_H
#define STUB_LIMITS_H
#include_next <limits.h>
#define NAME_MAX 255
#define PATH_MAX 1024
#endif
