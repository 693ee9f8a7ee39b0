// What each system call means: which file, which bytes, which names.
#define _GNU_SOURCE
#include "recorder.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>


size_t peek(pid_t thread, uint64_t address, void *bytes, size_t count) {
    struct iovec own = {bytes, count};
    struct iovec other = {(void *)address, count};
    ssize_t copied = process_vm_readv(thread, &own, 1, &other, 1, 0);
    return copied < 0 ? 0 : (size_t)copied;
}

/// A page at a time: the one after it may not be mapped.
void peek_text(pid_t thread, uint64_t address, char text[PATH_MAX]) {
    size_t count = 0;
    while (count < PATH_MAX - 1) {
        size_t part = 4096 - (address + count) % 4096;
        if (part > PATH_MAX - 1 - count) part = PATH_MAX - 1 - count;
        size_t copied = peek(thread, address + count, text + count, part);
        if (memchr(text + count, 0, copied) != NULL) return;
        count += copied;
        if (copied < part) break;
    }
    text[count] = 0;
}

void path_of(pid_t thread, int descriptor, char path[PATH_MAX]) {
    char link[64];
    if (descriptor == AT_FDCWD)
        snprintf(link, sizeof link, "/proc/%d/cwd", thread);
    else
        snprintf(link, sizeof link, "/proc/%d/fd/%d", thread, descriptor);
    ssize_t count = readlink(link, path, PATH_MAX - 1);
    path[count < 0 ? 0 : count] = 0;
}

static mode_t type_of(pid_t thread, int descriptor) {
    char link[64];
    struct stat status;
    snprintf(link, sizeof link, "/proc/%d/fd/%d", thread, descriptor);
    return stat(link, &status) == 0 ? status.st_mode & S_IFMT : 0;
}

static int64_t position_of(pid_t thread, int descriptor) {
    char link[64], text[256] = "";
    snprintf(link, sizeof link, "/proc/%d/fdinfo/%d", thread, descriptor);
    int opened = open(link, O_RDONLY | O_CLOEXEC);
    if (opened < 0) return 0;
    ssize_t count = read(opened, text, sizeof text - 1);
    close(opened);
    return count > 0 && strncmp(text, "pos:", 4) == 0 ? atoll(text + 4) : 0;
}

void take_bytes(struct call *call, pid_t thread, uint64_t address, uint64_t count) {
    call->data = malloc(count + 1);
    call->record.length = (int64_t)peek(thread, address, call->data, count);
}

static void take_vectors(struct call *call, pid_t thread, uint64_t address, uint64_t count) {
    struct iovec vectors[64];
    if (count > 64) count = 64;
    peek(thread, address, vectors, count * sizeof *vectors);
    size_t total = 0;
    for (uint64_t index = 0; index < count; index++) total += vectors[index].iov_len;
    call->data = malloc(total + 1);
    for (uint64_t index = 0; index < count; index++) {
        uint64_t from = (uint64_t)vectors[index].iov_base;
        size_t place = (size_t)call->record.length;
        size_t copied = peek(thread, from, call->data + place, vectors[index].iov_len);
        call->record.length += (int64_t)copied;
    }
}

static void take_message(struct call *call, pid_t thread, uint64_t address) {
    struct msghdr message;
    if (peek(thread, address, &message, sizeof message) != sizeof message) return;
    take_vectors(call, thread, (uint64_t)message.msg_iov, message.msg_iovlen);
}

/// A write to something: a file's, a socket's, or nobody's.
static int is_write(struct call *call, pid_t thread, int descriptor) {
    mode_t type = type_of(thread, descriptor);
    if (type != S_IFREG && type != S_IFSOCK) return 0;
    call->record.kind = type == S_IFREG ? RECORDER_WRITE : RECORDER_SEND;
    call->record.descriptor = descriptor;
    return 1;
}

/// The calls with bytes.
static int write_entered(struct call *call, pid_t thread, uint64_t number, const __uint64_t *a) {
    int descriptor = (int)a[0];
    switch (number) {
    case SYS_write:
    case SYS_writev:
        if (!is_write(call, thread, descriptor)) return 1;
        call->record.offset = position_of(thread, descriptor);
        if (number == SYS_write) take_bytes(call, thread, a[1], a[2]);
        else take_vectors(call, thread, a[1], a[2]);
        return 1;
    case SYS_pwrite64:
    case SYS_pwritev:
        if (!is_write(call, thread, descriptor)) return 1;
        call->record.offset = (int64_t)a[3];
        if (number == SYS_pwrite64) take_bytes(call, thread, a[1], a[2]);
        else take_vectors(call, thread, a[1], a[2]);
        return 1;
    case SYS_sendto:
        if (is_write(call, thread, descriptor)) take_bytes(call, thread, a[1], a[2]);
        return 1;
    case SYS_sendmsg:
        if (is_write(call, thread, descriptor)) take_message(call, thread, a[1]);
        return 1;
    default: return 0;
    }
}

/// The calls with one descriptor.
static int descriptor_entered(struct call *call, pid_t thread, uint64_t number,
                              const __uint64_t *a) {
    struct recorder_record *record = &call->record;
    record->descriptor = (int)a[0];
    switch (number) {
    case SYS_close: record->kind = RECORDER_CLOSE; return 1;
#ifdef SYS_dup2
    case SYS_dup2:
#endif
    case SYS_dup:
    case SYS_dup3:
    case SYS_fcntl: record->kind = RECORDER_DUPLICATE; return 1;
    case SYS_accept:
    case SYS_accept4: record->kind = RECORDER_ACCEPT; return 1;
    case SYS_ftruncate:
        record->kind = RECORDER_TRUNCATE;
        record->length = (int64_t)a[1];
        return 1;
    case SYS_fallocate:
        record->kind = RECORDER_ALLOCATE;
        record->argument = (uint32_t)a[1];
        record->offset = (int64_t)a[2];
        record->length = (int64_t)a[3];
        return 1;
    case SYS_fsync:
    case SYS_fdatasync:
        record->kind = RECORDER_SYNC;
        record->argument = number == SYS_fdatasync;
        return 1;
    case SYS_sync:
    case SYS_syncfs: record->kind = RECORDER_SYNC_ALL; return 1;
    case SYS_fsetxattr:
        record->kind = RECORDER_SET_ATTRIBUTE;
        peek_text(thread, a[1], call->other);
        take_bytes(call, thread, a[2], a[3]);
        return 1;
    case SYS_fremovexattr:
        record->kind = RECORDER_REMOVE_ATTRIBUTE;
        peek_text(thread, a[1], call->other);
        return 1;
    case SYS_fchmod:
        record->kind = RECORDER_MODE;
        record->mode = (uint32_t)a[1];
        return 1;
    default: record->descriptor = -1; return 0;
    }
}

/// A shared mapping of a file that may be written: what is written there, nobody sees.
static void map_entered(struct call *call, pid_t thread, const __uint64_t *a) {
    if ((a[2] & PROT_WRITE) == 0 || (a[3] & MAP_ANONYMOUS) != 0) return;
    call->record.kind = RECORDER_MAP;
    path_of(thread, (int)a[4], call->path);
}

void call_entered(struct recorder *recorder, struct call *call, pid_t thread, uint64_t number,
                  const __uint64_t arguments[6]) {
    if (write_entered(call, thread, number, arguments)) return;
    if (descriptor_entered(call, thread, number, arguments)) return;
    if (name_entered(recorder, call, thread, number, arguments)) {
        if (!is_watched(recorder, call->path)) call->record.kind = 0;
        return;
    }
    if (number == SYS_mmap) {
        map_entered(call, thread, arguments);
        return;
    }
    // Harmless, unless it is of a file that is watched.
    call->record.kind = RECORDER_UNKNOWN;
    snprintf(call->path, sizeof call->path, "number %lu", (unsigned long)number);
    path_of(thread, (int)arguments[0], call->other);
}

int call_left(struct call *call, pid_t thread, int64_t result) {
    struct recorder_record *record = &call->record;
    record->result = (int32_t)result;
    if (record->kind == RECORDER_OPEN) {
        char link[64];
        struct statx status;
        snprintf(link, sizeof link, "/proc/%d/fd/%d", thread, (int)result);
        if (statx(AT_FDCWD, link, 0, STATX_INO | STATX_BTIME, &status) != 0) return 0;
        record->inode = status.stx_ino;
        record->born = status.stx_btime.tv_sec * 1000000000LL + status.stx_btime.tv_nsec;
        record->mode = (record->mode & 07777) | (status.stx_mode & S_IFMT);
    }
    if ((record->kind == RECORDER_WRITE || record->kind == RECORDER_SEND) &&
        result < record->length)
        record->length = result;
    return 1;
}
