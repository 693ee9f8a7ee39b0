#if defined(__APPLE__)

#include "CLinux.h"

#include <crt_externs.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/event.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static int failed_with(int descriptor, int error) {
    close(descriptor);
    errno = error;
    return -1;
}

static int close_on_exec(int descriptor) {
    if (descriptor < 0 || fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0) return descriptor;
    return failed_with(descriptor, errno);
}

// Clocks. CLOCK_UPTIME_RAW stands still while the machine sleeps, as Linux' CLOCK_MONOTONIC does;
// Darwin's goes on, as Linux' CLOCK_BOOTTIME does.

static int64_t nanoseconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int64_t clinux_monotonic_nanoseconds(void) { return nanoseconds(CLOCK_UPTIME_RAW); }

int64_t clinux_boottime_milliseconds(void) {
    static _Atomic int64_t lead = -1;
    int64_t known = atomic_load_explicit(&lead, memory_order_relaxed);
    if (known < 0) {
        int64_t before = nanoseconds(CLOCK_MONOTONIC);
        int64_t found = ((nanoseconds(CLOCK_REALTIME) - before) % 1000000 + 1000000) % 1000000;
        if (atomic_compare_exchange_strong(&lead, &known, found)) known = found;
    }
    return (nanoseconds(CLOCK_MONOTONIC) + known) / 1000000;
}

// Threads and processes.

void clinux_schedule_as_batch(void) {}

void clinux_name_thread(const char *name) { pthread_setname_np(name); }

char *const *clinux_arguments(int *count) {
    *count = *_NSGetArgc();
    return *_NSGetArgv();
}

const char *clinux_program_name(void) { return getprogname(); }

void clinux_make_semaphore(clinux_semaphore *semaphore) {
    pthread_mutex_init(&semaphore->lock, NULL);
    pthread_cond_init(&semaphore->rise, NULL);
    semaphore->count = 0;
}

void clinux_end_semaphore(clinux_semaphore *semaphore) {
    pthread_cond_destroy(&semaphore->rise);
    pthread_mutex_destroy(&semaphore->lock);
}

void clinux_signal(clinux_semaphore *semaphore) {
    pthread_mutex_lock(&semaphore->lock);
    semaphore->count++;
    // Before it is unlocked: the waiter may end the semaphore as soon as it has it.
    pthread_cond_signal(&semaphore->rise);
    pthread_mutex_unlock(&semaphore->lock);
}

void clinux_wait(clinux_semaphore *semaphore, int64_t nanoseconds) {
    int64_t end = nanoseconds < 0 ? 0 : clinux_monotonic_nanoseconds() + nanoseconds;
    pthread_mutex_lock(&semaphore->lock);
    while (semaphore->count == 0) {
        if (nanoseconds < 0) {
            pthread_cond_wait(&semaphore->rise, &semaphore->lock);
            continue;
        }
        int64_t left = end - clinux_monotonic_nanoseconds();
        if (left <= 0) break;
        struct timespec time = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
        pthread_cond_timedwait_relative_np(&semaphore->rise, &semaphore->lock, &time);
    }
    if (semaphore->count > 0) semaphore->count--;
    pthread_mutex_unlock(&semaphore->lock);
}

// Sockets and events.

int clinux_local_socket(void) {
    int descriptor = close_on_exec(socket(AF_UNIX, SOCK_STREAM, 0));
    int one = 1;
    if (descriptor < 0 || setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &one, sizeof one) == 0)
        return descriptor;
    return failed_with(descriptor, errno);
}

int clinux_end_connect(int socket) {
    int flags = fcntl(socket, F_GETFL);
    return flags < 0 ? -1 : fcntl(socket, F_SETFL, flags | O_NONBLOCK);
}

// One event of a kqueue(2), which poll(2) finds readable as long as the event waits in it.
int clinux_eventfd(void) {
    int queue = close_on_exec(kqueue());
    struct kevent event;
    EV_SET(&event, 1, EVFILT_USER, EV_ADD | EV_CLEAR, 0, 0, NULL);
    if (queue < 0 || kevent(queue, &event, 1, NULL, 0, NULL) == 0) return queue;
    return failed_with(queue, errno);
}

void clinux_signal_event(int event) {
    struct kevent change;
    EV_SET(&change, 1, EVFILT_USER, 0, NOTE_TRIGGER, 0, NULL);
    kevent(event, &change, 1, NULL, 0, NULL);
}

void clinux_clear_event(int event) {
    struct kevent found;
    const struct timespec none = {0, 0};
    kevent(event, NULL, 0, &found, 1, &none);
}

// Files.

static int64_t birth_time(const struct stat *status) {
    return (int64_t)status->st_birthtimespec.tv_sec * 1000000000 + status->st_birthtimespec.tv_nsec;
}

int64_t clinux_birth_time(int descriptor) {
    struct stat status;
    return fstat(descriptor, &status) == 0 ? birth_time(&status) : -1;
}

int clinux_identify_file(const char *path, uint64_t *inode, int64_t *birth) {
    struct stat status;
    if (stat(path, &status) != 0) return -1;
    *inode = status.st_ino;
    *birth = birth_time(&status);
    return 0;
}

int clinux_file_number(const char *path, uint64_t *device, uint64_t *inode) {
    struct stat status;
    if (lstat(path, &status) != 0) return -1;
    *device = (uint32_t)status.st_dev;
    *inode = status.st_ino;
    return 0;
}

ssize_t clinux_get_attribute(int descriptor, const char *name, void *value, size_t size) {
    return fgetxattr(descriptor, name, value, size, 0, 0);
}

int clinux_set_attribute(int descriptor, const char *name, const void *value, size_t size) {
    return fsetxattr(descriptor, name, value, size, 0, 0);
}

int clinux_remove_attribute(int descriptor, const char *name) {
    return fremovexattr(descriptor, name, 0);
}

int clinux_remove_access_lists(int descriptor) {
    (void)descriptor;
    return 0;
}

int clinux_open_place(const char *path) { return open(path, O_EVTONLY | O_CLOEXEC); }

int clinux_open_step(int directory, const char *name, int is_on_the_way) {
    (void)is_on_the_way;
    return openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

unsigned clinux_device_major(dev_t device) { return (unsigned)device >> 24; }
unsigned clinux_device_minor(dev_t device) { return (unsigned)device & 0xFFFFFF; }

int64_t clinux_file_system_type(int descriptor) {
    struct statfs status;
    if (fstatfs(descriptor, &status) != 0) return -1;
    return (status.f_flags & MNT_LOCAL) ? 0 : 1;
}

void clinux_unlock(int descriptor) { flock(descriptor, LOCK_UN); }

int clinux_has_writer(int pipe, int milliseconds) {
    struct pollfd waiting = {.fd = pipe, .events = POLLIN};
    return poll(&waiting, 1, milliseconds) > 0;
}

int clinux_lock(int descriptor) { return flock(descriptor, LOCK_EX | LOCK_NB); }

int clinux_is_locked(int descriptor) {
    if (flock(descriptor, LOCK_SH | LOCK_NB) != 0) return errno == EWOULDBLOCK ? 1 : -1;
    flock(descriptor, LOCK_UN);
    return 0;
}

int clinux_hold(int descriptor) {
    (void)descriptor;
    return 0;
}

int clinux_open_beneath(int directory, const char *path, int flags) {
    return clinux_open_steps(directory, path, flags);
}

// File systems of other makers, and those of the net, know no F_FULLFSYNC.
int clinux_sync(int descriptor) {
    if (fcntl(descriptor, F_FULLFSYNC) == 0) return 0;
    if (errno != ENOTSUP && errno != ENOTTY && errno != EINVAL) return -1;
    return fsync(descriptor);
}

int clinux_sync_data(int descriptor) { return clinux_sync(descriptor); }

int clinux_sync_file_system(int descriptor) {
    return fsync_volume_np(descriptor, SYNC_VOLUME_FULLSYNC | SYNC_VOLUME_WAIT);
}

void clinux_begin_writing(int descriptor) { (void)descriptor; }

int clinux_allocate(int descriptor, off_t byte_count) {
    struct stat status;
    if (fstat(descriptor, &status) != 0) return errno;
    if (status.st_size >= byte_count) return 0;
    fstore_t room = {
        .fst_flags = F_ALLOCATEALL,
        .fst_posmode = F_PEOFPOSMODE,
        .fst_offset = 0,
        .fst_length = byte_count - status.st_size,
    };
    if (fcntl(descriptor, F_PREALLOCATE, &room) != 0) return errno;
    return ftruncate(descriptor, byte_count) == 0 ? 0 : errno;
}

int clinux_rename(
    int from_directory, const char *from, int to_directory, const char *to, unsigned flags
) {
    unsigned own = 0;
    if (flags & CLINUX_RENAME_NOREPLACE) own |= RENAME_EXCL;
    if (flags & CLINUX_RENAME_EXCHANGE) own |= RENAME_SWAP;
    return renameatx_np(from_directory, from, to_directory, to, own);
}

#endif
