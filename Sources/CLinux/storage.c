#define _GNU_SOURCE
#include "CLinux.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

int clinux_open_place(const char *path) { return open(path, O_PATH | O_CLOEXEC); }

int64_t clinux_file_system_type(int descriptor) {
    struct statfs status;
    return fstatfs(descriptor, &status) == 0 ? (int64_t)(uint32_t)status.f_type : -1;
}

int clinux_open_beneath(int directory, const char *path, int flags) {
    struct open_how how = {
        .flags = (unsigned)flags | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    return (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
}

int clinux_sync_file_system(int descriptor) { return syncfs(descriptor); }

int clinux_rename(int from_directory, const char *from, int to_directory, const char *to, unsigned flags) {
    return renameat2(from_directory, from, to_directory, to, flags);
}
