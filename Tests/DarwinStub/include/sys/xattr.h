#ifndef STUB_SYS_XATTR_H
#define STUB_SYS_XATTR_H
#include <sys/types.h>
ssize_t fgetxattr(
    int descriptor, const char *name, void *value, size_t size, uint32_t position, int options
);
int fsetxattr(
    int descriptor, const char *name, const void *value, size_t size, uint32_t position, int options
);
int fremovexattr(int descriptor, const char *name, int options);
#endif
