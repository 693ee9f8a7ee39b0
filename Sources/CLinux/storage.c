#if defined(__linux__)

#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/sysmacros.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

int clinux_open_place(const char *path) { return open(path, O_PATH | O_CLOEXEC); }

int clinux_open_link(const char *path) { return open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC); }

int clinux_change_place(int place, gid_t group, mode_t mode) {
    if (group != (gid_t)-1 && fchownat(place, "", -1, group, AT_EMPTY_PATH) != 0) return -1;
    // fchmodat2, since Linux 6.6; filters of system calls that do not know it refuse it.
    if (syscall(452, place, "", mode, AT_EMPTY_PATH) == 0) return 0;
    char name[32];
    snprintf(name, sizeof name, "/proc/self/fd/%d", place);
    return chmod(name, mode);
}

int clinux_open_step(int directory, const char *name, int is_on_the_way) {
    int access = is_on_the_way ? O_PATH : O_RDONLY;
    return openat(directory, name, access | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int clinux_has_writer(int pipe, int milliseconds) {
    struct pollfd waiting = {.fd = pipe, .events = POLLIN};
    if (poll(&waiting, 1, milliseconds) > 0) return 1;
    int copy[2];
    if (pipe2(copy, O_CLOEXEC) != 0) return 1;
    // poll(2) does not tell a writer that is silent from none, and read(2) would take bytes. tee(2) leaves them, and
    // returns 0 only without a writer.
    ssize_t count = tee(pipe, copy[1], 1, SPLICE_F_NONBLOCK);
    close(copy[0]);
    close(copy[1]);
    return count != 0;
}

unsigned clinux_device_major(dev_t device) { return major(device); }
unsigned clinux_device_minor(dev_t device) { return minor(device); }

int64_t clinux_file_system_type(int descriptor) {
    struct statfs status;
    return fstatfs(descriptor, &status) == 0 ? (int64_t)(uint32_t)status.f_type : -1;
}

int clinux_open_beneath(int directory, const char *path, int flags) {
    struct open_how how = {
        .flags = (unsigned)flags | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    int opened = (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
    // systemd's RestrictSUIDSGID= causes this error, because it cannot check the flags.
    if (opened < 0 && errno == ENOSYS) return clinux_open_steps(directory, path, flags);
    return opened;
}

int clinux_identify_file(const char *path, uint64_t *inode, int64_t *birth_time) {
    int place = clinux_open_place(path);
    if (place < 0) return -1;
    struct stat status;
    int code = fstat(place, &status);
    if (code == 0) {
        *inode = status.st_ino;
        *birth_time = clinux_birth_time(place);
    }
    clinux_close(place);
    return code;
}

int clinux_hold(int descriptor) { return flock(descriptor, LOCK_EX | LOCK_NB); }

int clinux_sync(int descriptor) { return fsync(descriptor); }

int clinux_sync_data(int descriptor) { return fdatasync(descriptor); }

int clinux_allocate(int descriptor, off_t byte_count) { return posix_fallocate(descriptor, 0, byte_count); }

int clinux_sync_file_system(int descriptor) { return syncfs(descriptor); }

void clinux_begin_writing(int descriptor) { sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE); }

int clinux_rename(
    int from_directory, const char *from, int to_directory, const char *to, unsigned flags) {
    return renameat2(from_directory, from, to_directory, to, flags);
}

#endif
