// What the system calls with paths mean.
#define _GNU_SOURCE
#include "recorder.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/// The path of a name in a directory.
static void resolve(pid_t thread, int directory, uint64_t address, char path[PATH_MAX]) {
    char name[PATH_MAX];
    peek_text(thread, address, name);
    if (name[0] == '/') {
        strcpy(path, name);
        return;
    }
    path_of(thread, directory, path);
    size_t count = strlen(path);
    snprintf(path + count, PATH_MAX - count, "/%s", name);
}

int is_watched(const struct recorder *recorder, const char *path) {
    size_t count = strlen(recorder->watched);
    return strncmp(path, recorder->watched, count) == 0 && (path[count] == '/' || path[count] == 0);
}

int recorder_identify(const char *path, uint64_t *inode, int64_t *born) {
    struct statx status;
    unsigned mask = STATX_INO | STATX_BTIME;
    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, mask, &status) != 0) return -1;
    *inode = status.stx_ino;
    *born = status.stx_btime.tv_sec * 1000000000LL + status.stx_btime.tv_nsec;
    return 0;
}

/// Gives a file another name, before it may lose its last.
static void keep(const struct recorder *recorder, const char *path) {
    struct stat status;
    uint64_t inode;
    int64_t born;
    char name[PATH_MAX];
    if (lstat(path, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 1) return;
    if (recorder_identify(path, &inode, &born) != 0) return;
    snprintf(name, sizeof name, "%s/%lu.%ld", recorder->kept, (unsigned long)inode, (long)born);
    if (link(path, name) != 0 && errno != EEXIST) abort();
}

static void open_entered(struct call *call, pid_t thread, int directory, uint64_t path,
                         uint64_t flags, uint64_t mode) {
    resolve(thread, directory, path, call->path);
    call->record.kind = RECORDER_OPEN;
    call->record.argument = (uint32_t)flags;
    call->record.mode = (uint32_t)mode;
}

static void rename_entered(const struct recorder *recorder, struct call *call, pid_t thread,
                           int from, uint64_t path, int to, uint64_t other, uint64_t flags) {
    resolve(thread, from, path, call->path);
    resolve(thread, to, other, call->other);
    call->record.kind = RECORDER_RENAME;
    call->record.argument = (uint32_t)flags;
    if (flags == 0 && is_watched(recorder, call->other)) keep(recorder, call->other);
}

static void unlink_entered(const struct recorder *recorder, struct call *call, pid_t thread,
                           int directory, uint64_t path, int is_directory) {
    resolve(thread, directory, path, call->path);
    call->record.kind = RECORDER_UNLINK;
    call->record.argument = (uint32_t)is_directory;
    if (!is_directory && is_watched(recorder, call->path)) keep(recorder, call->path);
}

static void path_entered(struct call *call, pid_t thread, int directory, uint64_t path,
                         uint32_t kind) {
    resolve(thread, directory, path, call->path);
    call->record.kind = kind;
}

/// The calls with paths.
int name_entered(const struct recorder *recorder, struct call *call, pid_t thread,
                        uint64_t number, const __uint64_t *a) {
    switch (number) {
#ifdef SYS_open
    case SYS_open: open_entered(call, thread, AT_FDCWD, a[0], a[1], a[2]); return 1;
    case SYS_creat:
        open_entered(call, thread, AT_FDCWD, a[0], O_CREAT | O_WRONLY | O_TRUNC, a[1]);
        return 1;
    case SYS_rename:
        rename_entered(recorder, call, thread, AT_FDCWD, a[0], AT_FDCWD, a[1], 0);
        return 1;
    case SYS_unlink: unlink_entered(recorder, call, thread, AT_FDCWD, a[0], 0); return 1;
    case SYS_rmdir: unlink_entered(recorder, call, thread, AT_FDCWD, a[0], 1); return 1;
    case SYS_mkdir:
        path_entered(call, thread, AT_FDCWD, a[0], RECORDER_MAKE_DIRECTORY);
        call->record.mode = (uint32_t)a[1];
        return 1;
    case SYS_link:
        path_entered(call, thread, AT_FDCWD, a[0], RECORDER_LINK);
        resolve(thread, AT_FDCWD, a[1], call->other);
        return 1;
    case SYS_chmod:
        path_entered(call, thread, AT_FDCWD, a[0], RECORDER_MODE);
        call->record.mode = (uint32_t)a[1];
        return 1;
#endif
    case SYS_openat: open_entered(call, thread, (int)a[0], a[1], a[2], a[3]); return 1;
    case SYS_openat2: {
        struct open_how how = {0};
        peek(thread, a[2], &how, sizeof how);
        open_entered(call, thread, (int)a[0], a[1], how.flags, how.mode);
        return 1;
    }
    case SYS_renameat:
    case SYS_renameat2:
        rename_entered(recorder, call, thread, (int)a[0], a[1], (int)a[2], a[3],
                       number == SYS_renameat2 ? a[4] : 0);
        return 1;
    case SYS_unlinkat:
        unlink_entered(recorder, call, thread, (int)a[0], a[1], (a[2] & AT_REMOVEDIR) != 0);
        return 1;
    case SYS_mkdirat:
        path_entered(call, thread, (int)a[0], a[1], RECORDER_MAKE_DIRECTORY);
        call->record.mode = (uint32_t)a[2];
        return 1;
    case SYS_linkat:
        path_entered(call, thread, (int)a[0], a[1], RECORDER_LINK);
        resolve(thread, (int)a[2], a[3], call->other);
        return 1;
    case SYS_fchmodat:
        path_entered(call, thread, (int)a[0], a[1], RECORDER_MODE);
        call->record.mode = (uint32_t)a[2];
        return 1;
    case SYS_truncate:
        path_entered(call, thread, AT_FDCWD, a[0], RECORDER_TRUNCATE);
        call->record.length = (int64_t)a[1];
        return 1;
    case SYS_setxattr:
    case SYS_lsetxattr:
        path_entered(call, thread, AT_FDCWD, a[0], RECORDER_SET_ATTRIBUTE);
        peek_text(thread, a[1], call->other);
        take_bytes(call, thread, a[2], a[3]);
        return 1;
    case SYS_removexattr:
    case SYS_lremovexattr:
        path_entered(call, thread, AT_FDCWD, a[0], RECORDER_REMOVE_ATTRIBUTE);
        peek_text(thread, a[1], call->other);
        return 1;
    default: return 0;
    }
}
