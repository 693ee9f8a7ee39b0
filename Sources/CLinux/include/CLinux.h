// What Swift's Glibc lacks of Linux: epoll, eventfd, signalfd, accept4, the peer's credentials,
// names of threads, statx's birth time, open-file-description locks, openat2, renameat2, and the processor's CRC-32C.
//
// Every function is the system call of its name and leaves errno as the call does.

#ifndef CLINUX_H
#define CLINUX_H

#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// epoll_event is packed on x86-64, which Swift cannot lay out; these hand the two fields over apart.
enum {
    CLINUX_EPOLLIN = 0x001,
    CLINUX_EPOLLOUT = 0x004,
    CLINUX_EPOLLERR = 0x008,
    CLINUX_EPOLLHUP = 0x010,
    CLINUX_EPOLLRDHUP = 0x2000,
    CLINUX_EPOLLET = (int)0x80000000,
};

struct clinux_event {
    uint64_t data;
    uint32_t events;
};

int clinux_epoll_create(void);
int clinux_epoll_add(int epoll, int descriptor, uint32_t events, uint64_t data);
int clinux_epoll_modify(int epoll, int descriptor, uint32_t events, uint64_t data);
int clinux_epoll_remove(int epoll, int descriptor);
/// Fills `events`, 256 at most. A negative timeout waits forever; before Linux 5.11 it is rounded up to milliseconds.
int clinux_epoll_wait(int epoll, struct clinux_event *events, int count, int64_t timeout_ns);

int clinux_eventfd(void);
/// Blocks SIGTERM, SIGINT and SIGHUP for this thread and those it starts, and returns a descriptor that reads them.
int clinux_signalfd(void);
/// The number of one waiting signal, or -1 with errno.
int clinux_read_signal(int descriptor);
/// Non-blocking and close-on-exec.
int clinux_accept(int listener);

struct clinux_peer {
    pid_t pid;
    uid_t uid;
    gid_t gid;
};
int clinux_peer_credentials(int socket, struct clinux_peer *peer);
/// The supplementary groups that the peer had when it connected (SO_PEERGROUPS, unix(7)): how many, or -1 with errno; ERANGE where
/// they are more than `count`.
int clinux_peer_groups(int socket, gid_t *groups, int count);

/// CLOCK_MONOTONIC in nanoseconds.
int64_t clinux_monotonic_nanoseconds(void);

/// CLOCK_BOOTTIME in milliseconds: it runs on while the machine sleeps, and nobody sets it.
int64_t clinux_boottime_milliseconds(void);

/// The calling thread no longer interrupts others when it wakes up (SCHED_BATCH, sched(7)); it needs no privilege.
void clinux_schedule_as_batch(void);

/// The number of the processor that the calling thread runs on; -1 if it is unknown.
int clinux_current_processor(void);

/// The processors that a thread may use, 1,024 at most.
struct clinux_processors {
    unsigned long bits[16];
};
/// Moves the calling thread away from `processor`, if it runs there and may use another.
///
/// Returns 1 if it was moved: `before` is what clinux_use_processors takes to undo it. Else 0.
int clinux_leave_processor(int processor, struct clinux_processors *before);
void clinux_use_processors(const struct clinux_processors *processors);

/// Has the kernel make room for so many open files at once.
///
/// Each time the table of files of a process with threads grows, accept(2) waits for all processors (synchronize_rcu), 9 to 17 ms.
void clinux_reserve_descriptors(int count);

/// sem_clockwait on CLOCK_MONOTONIC, for at most so long.
void clinux_wait(sem_t *semaphore, int64_t nanoseconds);

/// Asks the processor for 192 bytes that will be read soon.
static inline void clinux_prefetch(const void *memory) {
    __builtin_prefetch(memory);
    __builtin_prefetch((const char *)memory + 64);
    __builtin_prefetch((const char *)memory + 128);
}

/// Starts a program, found by PATH, that is asked to end (SIGTERM) when the calling thread ends, however that does.
///
/// posix_spawn(3) cannot: PR_SET_PDEATHSIG of prctl(2) is for the child to set. SIGPIPE is as it is by default.
///
/// Returns 0, or the errno of what failed; then nothing was started.
int clinux_spawn_bound(
    pid_t *child, char *const arguments[], char *const environment[], int standard_input
);

/// The arguments that this process was started with, its own name first, as `main` is called with them; it needs no /proc.
///
/// Null if the C library does not hand them to constructors (glibc does).
char *const *clinux_arguments(int *count);

/// Names the calling thread, 15 bytes at most.
void clinux_name_thread(const char *name);
/// The name that this program was started by, without its directory.
const char *clinux_program_name(void);

/// Bytes that malloc has given out.
size_t clinux_heap_byte_count(void);
/// Bytes that were freed and that malloc gives out again. It walks through them.
size_t clinux_free_heap_byte_count(void);
/// Has malloc give blocks of 1 MiB and more back to the kernel when they are freed.
///
/// Left alone it takes the largest block freed so far, up to 32 MiB, for what is worth keeping, and keeps up to
/// twice as much of each heap: https://man7.org/linux/man-pages/man3/mallopt.3.html
void clinux_return_large_blocks(void);

/// Has all threads take memory of one heap, to be called before there are others.
///
/// Left alone each thread reserves 64 MiB of addresses for a heap of its own, which RLIMIT_AS counts as if they were memory.
void clinux_use_one_heap(void);

/// Has the heap of the main thread grow by 4 MiB at a time, and each growth be made of huge pages.
///
/// With small ones nearly every look at an entry among many misses the processor's page table cache.
/// Where the kernel's transparent_hugepage is `never`, nothing changes.
void clinux_use_huge_pages(void);
extern const char *clinux_advised_end;
void clinux_advise_growth(void);
/// To be called with memory that malloc has just given out: where the heap has grown, the growth is advised.
static inline void clinux_note_allocation(const void *memory) {
    if (__builtin_expect((const char *)memory >= clinux_advised_end, 0)) clinux_advise_growth();
}

/// Birth time of a file in nanoseconds since the epoch, 0 where the file system keeps none; -1 with errno.
int64_t clinux_birth_time(int descriptor);

/// Device and inode of what has a name, which may be a link; -1 with errno.
///
/// Without its times: who asks for those of a file has the next write to it set new ones, which costs the file system's journal a commit
/// (multigrain timestamps, Linux 6.13).
int clinux_file_number(const char *path, uint64_t *device, uint64_t *inode);

/// How many bytes read(2) would take now: FIONREAD, which Swift does not see.
int clinux_waiting_byte_count(int descriptor, int *count);

/// Extended attributes of an open file: fgetxattr, fsetxattr, fremovexattr.
ssize_t clinux_get_attribute(int descriptor, const char *name, void *value, size_t size);
int clinux_set_attribute(int descriptor, const char *name, const void *value, size_t size);
int clinux_remove_attribute(int descriptor, const char *name);

/// A descriptor that names a file without opening it (O_PATH). Closing one, unlike any other, leaves the
/// POSIX locks alone that this process holds on the file.
int clinux_open_place(const char *path);
/// Opens a directory by its name in another one, close-on-exec, and follows no link. One that is on the way to another is only named
/// (O_PATH), and needs no permission to read it.
int clinux_open_step(int directory, const char *name, int is_on_the_way);
/// The parts of a device's number, as /proc/locks shows them.
unsigned clinux_device_major(dev_t device);
unsigned clinux_device_minor(dev_t device);
/// The magic number of the file system (statfs(2)) that a descriptor is on; -1 with errno.
int64_t clinux_file_system_type(int descriptor);

/// Gives up a lock that `clinux_lock` took, also where other descriptors of the same open file are left.
void clinux_unlock(int descriptor);

/// Takes an open-file-description lock on the whole file. 0 where it was taken, else -1 with errno.
int clinux_lock(int descriptor);
/// Whether somebody else holds such a lock on the file: 1, 0, or -1 with errno. Takes nothing.
int clinux_is_locked(int descriptor);

/// openat2 with RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS and RESOLVE_NO_MAGICLINKS, and close-on-exec: what it opens is
/// below `directory`, and no link was followed on the way. Where openat2 is not to be had, step by step.
int clinux_open_beneath(int directory, const char *path, int flags);

/// Makes everything durable that was written to the file system of `descriptor` (syncfs(2)). 0, or -1 with errno.
int clinux_sync_file_system(int descriptor);

enum { CLINUX_RENAME_NOREPLACE = 1, CLINUX_RENAME_EXCHANGE = 2 };
int clinux_rename(int from_directory, const char *from, int to_directory, const char *to, unsigned flags);

/// CRC-32C (Castagnoli, reflected 0x82F63B78) of `count` bytes, continuing from `crc` (0 to begin).
uint32_t clinux_crc32c(uint32_t crc, const void *bytes, size_t count);

// What a thread is in the middle of, for the state containers; a look costs about a nanosecond.

/// The container in whose `modify` body the calling thread is; null elsewhere.
extern __thread const void *clinux_thread_body;
static inline const void *clinux_body(void) { return clinux_thread_body; }
static inline void clinux_set_body(const void *container) { clinux_thread_body = container; }

/// How many changes in a row led to the one that the calling thread is telling of, itself included; 0 elsewhere.
extern __thread int64_t clinux_thread_depth;
static inline int64_t clinux_depth(void) { return clinux_thread_depth; }
static inline void clinux_set_depth(int64_t depth) { clinux_thread_depth = depth; }

/// The keyspace whose events and answers the calling thread is handing out; null elsewhere.
extern __thread const void *clinux_thread_deliverer;
static inline const void *clinux_deliverer(void) { return clinux_thread_deliverer; }
static inline void clinux_set_deliverer(const void *keyspace) { clinux_thread_deliverer = keyspace; }

/// Whether any scope of state containers was ever made in this process.
extern int clinux_scopes;
static inline int clinux_has_scopes(void) { return __atomic_load_n(&clinux_scopes, __ATOMIC_RELAXED); }
static inline void clinux_note_scope(void) { __atomic_store_n(&clinux_scopes, 1, __ATOMIC_RELAXED); }

#endif
