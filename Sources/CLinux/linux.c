#if defined(__linux__)

#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <sys/xattr.h>
#include <unistd.h>

int clinux_epoll_create(void) { return epoll_create1(EPOLL_CLOEXEC); }

static int control(int epoll, int operation, int descriptor, uint32_t events, uint64_t data) {
    struct epoll_event event = {.events = events, .data.u64 = data};
    return epoll_ctl(epoll, operation, descriptor, &event);
}

int clinux_epoll_add(int epoll, int descriptor, uint32_t events, uint64_t data) {
    return control(epoll, EPOLL_CTL_ADD, descriptor, events, data);
}

int clinux_epoll_modify(int epoll, int descriptor, uint32_t events, uint64_t data) {
    return control(epoll, EPOLL_CTL_MOD, descriptor, events, data);
}

int clinux_epoll_remove(int epoll, int descriptor) {
    return control(epoll, EPOLL_CTL_DEL, descriptor, 0, 0);
}

ssize_t clinux_receive(int descriptor, void *bytes, size_t count) {
    return syscall(SYS_recvfrom, descriptor, bytes, count, MSG_DONTWAIT, NULL, NULL);
}

ssize_t clinux_send(int descriptor, const void *bytes, size_t count) {
    return syscall(SYS_sendto, descriptor, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
}

int clinux_epoll_wait(int epoll, struct clinux_event *events, int count, int64_t timeout_ns) {
    struct epoll_event packed[256];
    if (count > 256) count = 256;
    int ready;
    if (timeout_ns <= 0) {
        // A third cheaper than epoll_pwait2, and called 100 times while a single writer waits.
        ready = epoll_wait(epoll, packed, count, timeout_ns < 0 ? -1 : 0);
    } else {
        struct timespec timeout = {timeout_ns / 1000000000, timeout_ns % 1000000000};
        ready = epoll_pwait2(epoll, packed, count, &timeout, NULL);
        if (ready < 0 && errno == ENOSYS) {
            int64_t timeout_ms = (timeout_ns + 999999) / 1000000;
            int timeout_whole = timeout_ms > INT32_MAX ? INT32_MAX : (int)timeout_ms;
            ready = epoll_wait(epoll, packed, count, timeout_whole);
        }
    }
    for (int i = 0; i < ready; i++) {
        events[i].data = packed[i].data.u64;
        events[i].events = packed[i].events;
    }
    return ready;
}

int clinux_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

void clinux_signal_event(int event) {
    uint64_t one = 1;
    (void)!write(event, &one, sizeof one);
}

void clinux_clear_event(int event) {
    uint64_t count;
    (void)!read(event, &count, sizeof count);
}

_Static_assert(CLINUX_SEND_AT_ONCE == (MSG_NOSIGNAL | MSG_DONTWAIT), "send has other flags");

int clinux_local_socket(void) { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }

int clinux_timer(void) { return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC); }

void clinux_set_timer(int timer, int64_t nanoseconds) {
    struct itimerspec time = {
        .it_value = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000}
    };
    (void)!timerfd_settime(timer, 0, &time, NULL);
}

void clinux_wait_for_timer(int timer) {
    uint64_t count;
    (void)!read(timer, &count, sizeof count);
}

static int signalfd_with(const int *further, int count) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    for (int i = 0; i < count; i++) sigaddset(&set, further[i]);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0) return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int clinux_signalfd(void) { return signalfd_with(NULL, 0); }

int clinux_terminal_signalfd(void) {
    static const int further[] = {SIGWINCH, SIGQUIT, SIGTSTP, SIGCONT};
    return signalfd_with(further, sizeof further / sizeof *further);
}

void clinux_stop_by_terminal(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTSTP);
    // SIGSTOP would stop also a process that nobody would continue: one of an orphaned process group.
    raise(SIGTSTP);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

int clinux_window_size(int descriptor, int *columns, int *rows) {
    struct winsize size;
    if (ioctl(descriptor, TIOCGWINSZ, &size) != 0) return -1;
    *columns = size.ws_col;
    *rows = size.ws_row;
    return 0;
}

int clinux_read_signal(int descriptor) {
    struct signalfd_siginfo info;
    return read(descriptor, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : -1;
}

int clinux_accept(int listener) {
    return accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

int clinux_peer_credentials(int socket, struct clinux_peer *peer) {
    struct ucred credentials;
    socklen_t size = sizeof credentials;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return -1;
    peer->pid = credentials.pid;
    peer->uid = credentials.uid;
    peer->gid = credentials.gid;
    return 0;
}

int clinux_peer_name(int socket, char *name) {
    struct sockaddr_un address;
    socklen_t size = sizeof address;
    if (getpeername(socket, (struct sockaddr *)&address, &size) != 0 || address.sun_family != AF_UNIX) return -1;
    int count = (int)size - (int)offsetof(struct sockaddr_un, sun_path) - 1;
    if (count <= 0 || address.sun_path[0] != 0) return -1;
    memcpy(name, address.sun_path + 1, count);
    return count;
}

static int64_t nanoseconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* How far the milliseconds of the wall clock begin before those of CLOCK_BOOTTIME, in nanoseconds. */
static int64_t millisecond_lead(void) {
    int64_t lead = 0;
    /* Whoever loses the processor between two readings reads again. */
    for (int count = 0; count < 20; ++count) {
        int64_t before = nanoseconds(CLOCK_BOOTTIME);
        int64_t wall = nanoseconds(CLOCK_REALTIME);
        lead = ((wall - before) % 1000000 + 1000000) % 1000000;
        if (nanoseconds(CLOCK_BOOTTIME) - before < 2000) break;
    }
    return lead;
}

int64_t clinux_boottime_milliseconds(void) {
    static _Atomic int64_t lead = -1;
    int64_t known = atomic_load_explicit(&lead, memory_order_relaxed);
    if (known < 0) {
        int64_t found = millisecond_lead();
        if (atomic_compare_exchange_strong(&lead, &known, found)) known = found;
    }
    return (nanoseconds(CLOCK_BOOTTIME) + known) / 1000000;
}

int clinux_peer_groups(int socket, gid_t *groups, int count) {
    socklen_t size = (socklen_t)count * (socklen_t)sizeof *groups;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups, &size) != 0) return -1;
    return (int)(size / sizeof *groups);
}

int64_t clinux_monotonic_nanoseconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

void clinux_make_semaphore(clinux_semaphore *semaphore) { sem_init(semaphore, 0, 0); }

void clinux_end_semaphore(clinux_semaphore *semaphore) { sem_destroy(semaphore); }

void clinux_signal(clinux_semaphore *semaphore) { sem_post(semaphore); }

void clinux_wait(clinux_semaphore *semaphore, int64_t nanoseconds) {
    if (nanoseconds < 0) {
        while (sem_wait(semaphore) != 0 && errno == EINTR) {}
        return;
    }
    int64_t end = clinux_monotonic_nanoseconds() + nanoseconds;
    struct timespec time = {.tv_sec = end / 1000000000, .tv_nsec = end % 1000000000};
    while (sem_clockwait(semaphore, CLOCK_MONOTONIC, &time) != 0 && errno == EINTR) {}
}

void clinux_schedule_as_batch(void) {
    struct sched_param none = {0};
    sched_setscheduler(0, SCHED_BATCH, &none);
}

int clinux_processor_count(void) {
    cpu_set_t processors;
    if (sched_getaffinity(0, sizeof processors, &processors) == 0) return CPU_COUNT(&processors);
    // There are more than a set has room for.
    return CPU_SETSIZE;
}

int clinux_current_processor(void) { return sched_getcpu(); }

_Static_assert(
    sizeof(struct clinux_processors) == sizeof(cpu_set_t), "a set of processors has another size"
);

int clinux_leave_processor(int processor, struct clinux_processors *before) {
    if (processor < 0 || sched_getcpu() != processor) return 0;
    cpu_set_t processors;
    if (sched_getaffinity(0, sizeof processors, &processors) != 0) return 0;
    memcpy(before, &processors, sizeof processors);
    CPU_CLR(processor, &processors);
    if (CPU_COUNT(&processors) == 0) return 0;
    return sched_setaffinity(0, sizeof processors, &processors) == 0;
}

void clinux_use_processors(const struct clinux_processors *processors) {
    sched_setaffinity(0, sizeof(cpu_set_t), (const cpu_set_t *)processors);
}

void clinux_reserve_descriptors(int count) {
    int any = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (any < 0) return;
    int last = fcntl(any, F_DUPFD_CLOEXEC, count - 1);
    if (last >= 0) close(last);
    close(any);
}

static int read_failure(int descriptor) {
    int failure = 0;
    ssize_t count;
    do count = read(descriptor, &failure, sizeof failure);
    while (count < 0 && errno == EINTR);
    return count == sizeof failure ? failure : 0;
}

static void become(
    char *const arguments[], char *const environment[], int standard_input, int standard_output
) {
    // This process ignores SIGPIPE; a command expects the default.
    signal(SIGPIPE, SIG_DFL);
    if (standard_input == STDIN_FILENO) {
        fcntl(STDIN_FILENO, F_SETFD, 0);
    } else {
        dup2(standard_input, STDIN_FILENO);
    }
    if (standard_output != STDOUT_FILENO) dup2(standard_output, STDOUT_FILENO);
    execvpe(arguments[0], arguments, environment);
}

int clinux_spawn_bound(
    pid_t *child, char *const arguments[], char *const environment[], int standard_input,
    int standard_output
) {
    int report[2];
    if (pipe2(report, O_CLOEXEC) != 0) return errno;
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        // If the parent ended before, there is no signal.
        if (getppid() != parent) _exit(127);
        become(arguments, environment, standard_input, standard_output);
        int failure = errno;
        (void)!write(report[1], &failure, sizeof failure);
        _exit(127);
    }
    int failure = pid < 0 ? errno : 0;
    close(report[1]);
    if (pid > 0) {
        failure = read_failure(report[0]);
        while (failure != 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) {}
    }
    close(report[0]);
    *child = pid;
    return failure;
}

void clinux_name_thread(const char *name) { prctl(PR_SET_NAME, name); }

const char *clinux_program_name(void) { return program_invocation_short_name; }

void clinux_return_large_blocks(void) {
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    mallopt(M_TRIM_THRESHOLD, 4 << 20);
}

void clinux_trim_heap(void) { malloc_trim(4 << 20); }

void clinux_use_one_heap(void) { mallopt(M_ARENA_MAX, 1); }

// Above every address until huge pages are requested, so that an allocation costs only one
// comparison.
const char *clinux_advised_end = (const char *)UINTPTR_MAX;

void clinux_use_huge_pages(int growth) {
    mallopt(M_TOP_PAD, growth);
    clinux_advised_end = NULL;
    clinux_advise_growth();
}

void clinux_advise_growth(void) {
    char *end = sbrk(0);
    uintptr_t page = (uintptr_t)2 << 20;
    uintptr_t start = (uintptr_t)clinux_advised_end;
    if (start == 0) start = (uintptr_t)end & ~(page - 1);
    // Memory that was mapped separately lies above the heap and does not belong to it.
    if ((uintptr_t)end <= start) return;
    uintptr_t aligned = start & ~(uintptr_t)4095;
    madvise((void *)aligned, (uintptr_t)end - aligned, MADV_HUGEPAGE);
    clinux_advised_end = end;
}

size_t clinux_heap_byte_count(void) {
    struct mallinfo2 heap = mallinfo2();
    return heap.uordblks + heap.hblkhd;
}

size_t clinux_free_heap_byte_count(void) {
    struct mallinfo2 heap = mallinfo2();
    return heap.fordblks - heap.keepcost;
}

int64_t clinux_birth_time(int descriptor) {
    struct statx status;
    if (statx(descriptor, "", AT_EMPTY_PATH, STATX_BTIME, &status) != 0) return -1;
    if (!(status.stx_mask & STATX_BTIME)) return 0;
    return status.stx_btime.tv_sec * 1000000000 + status.stx_btime.tv_nsec;
}

int clinux_file_number(const char *path, uint64_t *device, uint64_t *inode) {
    struct statx status;
    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_INO, &status) != 0) return -1;
    *device = (uint64_t)status.stx_dev_major << 32 | status.stx_dev_minor;
    *inode = status.stx_ino;
    return 0;
}

int clinux_waiting_byte_count(int descriptor, int *count) {
    return ioctl(descriptor, FIONREAD, count);
}

ssize_t clinux_get_attribute(int descriptor, const char *name, void *value, size_t size) {
    return fgetxattr(descriptor, name, value, size);
}

int clinux_set_attribute(int descriptor, const char *name, const void *value, size_t size) {
    return fsetxattr(descriptor, name, value, size, 0);
}

int clinux_remove_attribute(int descriptor, const char *name) {
    return fremovexattr(descriptor, name);
}

int clinux_remove_access_lists(int descriptor) {
    static const char *const names[] = {"system.posix_acl_access", "system.posix_acl_default"};
    for (int index = 0; index < 2; index++) {
        if (fremovexattr(descriptor, names[index]) == 0) continue;
        // Only directories have a default list, and some file systems have no lists at all.
        int is_absent = errno == ENODATA || errno == EOPNOTSUPP || (index == 1 && errno == EACCES);
        if (!is_absent) return -1;
    }
    return 0;
}

void clinux_unlock(int descriptor) {
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    fcntl(descriptor, F_OFD_SETLK, &lock);
}

int clinux_lock(int descriptor) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(descriptor, F_OFD_SETLK, &lock);
}

int clinux_is_locked(int descriptor) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(descriptor, F_OFD_GETLK, &lock) == 0 ? lock.l_type != F_UNLCK : -1;
}

#endif
