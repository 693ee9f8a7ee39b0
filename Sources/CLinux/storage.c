#define _GNU_SOURCE
#include "CLinux.h"

#include <fcntl.h>
#include <sys/vfs.h>

int clinux_open_place(const char *path) { return open(path, O_PATH | O_CLOEXEC); }

int64_t clinux_file_system_type(int descriptor) {
    struct statfs status;
    return fstatfs(descriptor, &status) == 0 ? (int64_t)(uint32_t)status.f_type : -1;
}
