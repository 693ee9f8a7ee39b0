// What Swift's Glibc lacks of Linux: epoll, eventfd, signalfd, accept4, the peer's credentials,
// descriptors in messages, names of threads, statx's birth time, open-file-description locks,
// openat2, renameat2, the processor's CRC-32C, and sums in long double.
//
// Every function is the system call of its name and leaves errno as the call does.
//
// On Darwin there is only what the modules of the library use, as close to Linux as it goes there
// (darwin.c); what only the daemon and its tools use is Linux's. That code was type-checked, and
// never run: scripts/typecheck-darwin.

#ifndef CLINUX_H
#define CLINUX_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#if defined(__linux__)

#include <semaphore.h>

// epoll_event is packed on x86-64, which Swift cannot express; these pass its two fields
// separately.
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

/// recv and send of a socket, without waiting and without SIGPIPE.
///
/// The C library's own are points where a thread can be cancelled: in a process with threads that takes
/// two locked instructions before and two after each call.
ssize_t clinux_receive(int descriptor, void *bytes, size_t count);
ssize_t clinux_send(int descriptor, const void *bytes, size_t count);

int clinux_epoll_create(void);
int clinux_epoll_add(int epoll, int descriptor, uint32_t events, uint64_t data);
int clinux_epoll_modify(int epoll, int descriptor, uint32_t events, uint64_t data);
int clinux_epoll_remove(int epoll, int descriptor);
/// Fills `events`, at most 256. A negative timeout waits forever; before Linux 5.11 the timeout is
/// rounded up to milliseconds.
int clinux_epoll_wait(int epoll, struct clinux_event *events, int count, int64_t timeout_ns);

/// Blocks SIGTERM, SIGINT and SIGHUP for this thread and those it starts, and returns a descriptor
/// to read them.
int clinux_signalfd(void);
/// The same with SIGWINCH, SIGQUIT, SIGTSTP and SIGCONT, for a program on a terminal.
int clinux_terminal_signalfd(void);
/// Stops this process as SIGTSTP does, which this thread blocks; returns when it continues, or at
/// once if nobody could continue it.
void clinux_stop_by_terminal(void);
/// The size of a terminal; returns -1 if the descriptor is not that of a terminal.
int clinux_window_size(int descriptor, int *columns, int *rows);
/// The number of one pending signal, or -1 with errno.
int clinux_read_signal(int descriptor);
/// Non-blocking and close-on-exec.
int clinux_accept(int listener);

struct clinux_peer {
    pid_t pid;
    uid_t uid;
    gid_t gid;
};
int clinux_peer_credentials(int socket, struct clinux_peer *peer);
/// The abstract name of the peer's Unix socket (unix(7)) without its first byte, which is 0: the number of bytes, at most
/// 107; -1 if it has none.
int clinux_peer_name(int socket, char *name);
/// The supplementary groups that the peer had when it connected (SO_PEERGROUPS, unix(7)): their
/// number, or -1 with errno; ERANGE if there are more than `count`.
int clinux_peer_groups(int socket, gid_t *groups, int count);

/// A descriptor of the process that connected (SO_PEERPIDFD), which becomes readable when it ends;
/// -1 if the kernel is older than 6.5 or does not see the process.
int clinux_peer_process(int socket);
/// Reads /proc/PID/cgroup (cgroups(7)) of the process that connected, whose number is `pid`: the number of bytes, at most
/// `size`; -1 if the kernel is older than 6.5, does not show it, or the process has ended.
int clinux_peer_control_groups(int socket, pid_t pid, char *text, int size);
/// A descriptor of the process with this number (pidfd_open(2)), or -1 with errno.
int clinux_process(pid_t pid);
/// pidfd_send_signal(2).
int clinux_signal_process(int process, int signal);
/// The most descriptors of one message (SCM_MAX_FD of the kernel).
enum { CLINUX_DESCRIPTORS = 253 };
/// Sends one message with descriptors (SCM_RIGHTS, unix(7)); `address` is null for a socket that is
/// connected. The bytes sent, or -1 with errno.
ssize_t clinux_send_descriptors(
    int socket, const void *address, unsigned address_size, const void *bytes, size_t count,
    const int *descriptors, int descriptor_count
);
/// Receives one message with at most CLINUX_DESCRIPTORS descriptors, which are close-on-exec; those
/// for which this process has no room are lost. The bytes received, or -1 with errno.
ssize_t clinux_receive_descriptors(
    int socket, void *bytes, size_t capacity, int *descriptors, int *descriptor_count
);
/// A file in memory with these bytes, which nobody can change (memfd_create(2), F_ADD_SEALS); -1
/// with errno.
int clinux_make_memory(const char *name, const void *bytes, size_t count);
/// Whether a descriptor is that of such a file.
int clinux_is_constant_memory(int file);

/// When a process started, in clock ticks since the machine did; 0 if /proc does not show it.
int64_t clinux_process_start(pid_t pid);
/// Starts a copy of this process, which must have one thread, as a daemon: without parent, terminal,
/// standard input and output.
///
/// Returns 1 in the copy, which gets a descriptor of the original in `original`; 0 in the original,
/// and -1 there with errno if there is no copy.
int clinux_start_companion(int *original);
/// Replaces this process by a program that is found by PATH; returns only if that fails, with errno.
void clinux_become(char *const arguments[], char *const environment[]);

/// How many processors the calling thread may use; at least 1.
int clinux_processor_count(void);
/// The number of the processor that the calling thread runs on; -1 if unknown.
int clinux_current_processor(void);

/// The processors that a thread may use, at most 1,024.
struct clinux_processors {
    unsigned long bits[16];
};
/// Moves the calling thread away from `processor`, if it runs there and may use another.
///
/// Returns 1 if it was moved; pass `before` to clinux_use_processors to undo it. Otherwise 0.
int clinux_leave_processor(int processor, struct clinux_processors *before);
void clinux_use_processors(const struct clinux_processors *processors);

/// Makes the kernel reserve room for this many open files.
///
/// Each time the file table of a process with threads grows, accept(2) waits for all processors
/// (synchronize_rcu), 9 to 17 ms.
void clinux_reserve_descriptors(int count);

/// Starts a program, found by PATH, that gets SIGTERM when the calling thread ends, however that
/// happens.
///
/// posix_spawn(3) cannot do that: the child must set PR_SET_PDEATHSIG of prctl(2). SIGPIPE has its
/// default action.
///
/// Returns 0, or the errno of the failure; then nothing was started.
int clinux_spawn_bound(
    pid_t *child, char *const arguments[], char *const environment[], int standard_input,
    int standard_output
);

/// Bytes that malloc has allocated.
size_t clinux_heap_byte_count(void);
/// Freed bytes that malloc can allocate again, without those at the end of the heap, which were
/// perhaps never used. It walks through them.
size_t clinux_free_heap_byte_count(void);
/// Makes malloc return blocks of 1 MiB and more to the kernel when they are freed.
///
/// By default it treats the largest block freed so far, up to 32 MiB, as worth keeping, and keeps
/// up to twice as much of each heap: https://man7.org/linux/man-pages/man3/mallopt.3.html
void clinux_return_large_blocks(void);
/// Returns free pages anywhere in the heaps to the kernel; it walks through them.
void clinux_trim_heap(void);

/// Makes all threads use one heap; must be called before there are other threads.
///
/// By default each thread reserves 64 MiB of addresses for a heap of its own, which RLIMIT_AS
/// counts like memory.
void clinux_use_one_heap(void);

/// Makes the heap of the main thread grow by `growth` bytes at a time, in huge pages.
///
/// The huge page at the end of the heap is not whole until the heap grows, so small pages stand in
/// for it: one of those that fit into `growth`. Until they are used, bytes take addresses but no
/// memory; as many stay with the process when everything is freed.
///
/// With small pages, nearly every access to an entry among many misses the processor's page table
/// cache. If the kernel's transparent_hugepage is `never`, nothing changes.
void clinux_use_huge_pages(int growth);
extern const char *clinux_advised_end;
void clinux_advise_growth(void);
/// Must be called with memory that malloc has just allocated: if the heap has grown, advises the
/// kernel about the growth.
static inline void clinux_note_allocation(const void *memory) {
    if (__builtin_expect((const char *)memory >= clinux_advised_end, 0)) clinux_advise_growth();
}

/// How many bytes read(2) would return now: FIONREAD, which Swift does not import.
int clinux_waiting_byte_count(int descriptor, int *count);

/// The same, of a link itself.
int clinux_open_link(const char *path);
/// Changes group (-1: does not) and mode of what clinux_open_place or clinux_open_link has named. 0,
/// or -1 with errno.
int clinux_change_place(int place, gid_t group, mode_t mode);

/// Makes SIGHUP, SIGINT and SIGTERM remove what clinux_draft has named before they end the process. What
/// is ignored stays ignored.
void clinux_remove_drafts_on_signals(void);
/// Names what is not finished, by a path from `directory` on: a file (kind 0), an empty directory (1), or
/// a directory with all of its files (2).
void clinux_draft(int directory, const char *path, int kind);
/// Removes a directory that has nothing but files. 0, or -1 with errno.
int clinux_remove_directory(int directory, const char *path);
/// Forgets all of them: they are finished, or removed.
void clinux_forget_drafts(void);

#endif

// What the modules of the library use.

#if defined(__linux__)

typedef sem_t clinux_semaphore;

/// Of send(2): it neither waits nor makes SIGPIPE.
enum { CLINUX_SEND_AT_ONCE = 0x4040 };

static inline int clinux_end_connect(int socket) {
    (void)socket;
    return 0;
}

#else

#include <pthread.h>

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t rise;
    int64_t count;
} clinux_semaphore;

// MSG_DONTWAIT; the socket itself does not wait and makes no SIGPIPE.
enum { CLINUX_SEND_AT_ONCE = 0x80 };

/// A connected socket must not wait to send, whatever the flags of send(2) are.
int clinux_end_connect(int socket);

static inline void clinux_note_allocation(const void *memory) { (void)memory; }

#endif

/// A socket of AF_UNIX and SOCK_STREAM, close-on-exec; clinux_end_connect must follow connect(2). -1 with errno.
int clinux_local_socket(void);

/// A descriptor that poll(2) finds readable from clinux_signal_event on until clinux_clear_event, close-on-exec
/// (eventfd(2)); -1 with errno.
int clinux_eventfd(void);
void clinux_signal_event(int event);
void clinux_clear_event(int event);

#if defined(__linux__)
/// A timer of CLOCK_MONOTONIC, close-on-exec (timerfd_create(2)); -1 with errno.
int clinux_timer(void);
/// Lets it go off once after so many nanoseconds; 0 stops it.
void clinux_set_timer(int timer, int64_t nanoseconds);
/// Waits until it goes off, unless it has since the last call; a signal may end the wait, too.
void clinux_wait_for_timer(int timer);

/// Writes what was printed to standard output and is still in the buffer of the C library.
///
/// 0 if all that was printed is written, or if nobody reads it any more; otherwise the number of the error.
int clinux_end_output(void);
#endif

/// A counting semaphore (sem_overview(7)).
void clinux_make_semaphore(clinux_semaphore *semaphore);
void clinux_end_semaphore(clinux_semaphore *semaphore);
void clinux_signal(clinux_semaphore *semaphore);
/// Waits for a signal for at most `nanoseconds` of CLOCK_MONOTONIC; forever if they are negative.
void clinux_wait(clinux_semaphore *semaphore, int64_t nanoseconds);

/// Starts a thread with a stack of this size; 0 for the system's default. Returns 0, or the number of the error.
int clinux_start_thread(
    uintptr_t *thread, void *(*body)(void *), void *context, size_t stack_byte_count
);
void clinux_join_thread(uintptr_t thread);
void clinux_detach_thread(uintptr_t thread);
/// The calling thread; the system uses the numbers of ended threads again.
uintptr_t clinux_current_thread(void);
/// The processor time that a thread of this process has used, in nanoseconds; -1 if that is not known.
int64_t clinux_thread_nanoseconds(uintptr_t thread);

/// CLOCK_MONOTONIC in nanoseconds.
int64_t clinux_monotonic_nanoseconds(void);

/// CLOCK_BOOTTIME in milliseconds: it continues while the machine sleeps, and cannot be set.
///
/// Its milliseconds begin together with those that the wall clock had at the first call, so that
/// neither is late where a wall time becomes one of this clock.
int64_t clinux_boottime_milliseconds(void);

/// The calling thread no longer preempts others when it wakes up (SCHED_BATCH, sched(7)); needs no
/// privilege.
void clinux_schedule_as_batch(void);

/// How many calls of fork(2) are between the first process of this program and the calling one; children of posix_spawn(3) and vfork(2) do
/// not count.
int clinux_fork_count(void);

/// From now on the calling thread gives way where it calls `clinux_let_others_run`, as long as the flag is 0, which any thread may set; NULL
/// ends that. The flag must live until then.
void clinux_give_way(const int *hurry);
void clinux_set_hurry(int *flag, int now);
/// Has threads run that wait for this processor, if the calling thread gives way and has run for 50 us: on Linux it then gets little of a
/// processor that others want, and all of one that they leave (sched_yield(2)).
void clinux_let_others_run(void);

/// Zeroed memory outside of the heaps, of whole pages, which goes back to the kernel when it is unmapped; NULL without any. A block of the
/// heap of a thread may stay for good: malloc takes it from what the heap has, whatever its length.
void *clinux_map_memory(size_t byte_count);
void clinux_unmap_memory(void *start, size_t byte_count);

/// Prefetches 192 bytes that will be read soon.
static inline void clinux_prefetch(const void *memory) {
    __builtin_prefetch(memory);
    __builtin_prefetch((const char *)memory + 64);
    __builtin_prefetch((const char *)memory + 128);
}

/// The arguments of this process, its own name first, as passed to `main`; needs no /proc.
///
/// Null if the C library does not pass them to constructors (glibc does).
char *const *clinux_arguments(int *count);

/// Names the calling thread, at most 15 bytes.
void clinux_name_thread(const char *name);
/// The name by which this program was started, without its directory.
const char *clinux_program_name(void);

/// Birth time of a file in nanoseconds since 1970, 0 if the file system keeps none; -1 with errno.
int64_t clinux_birth_time(int descriptor);

/// Device and inode of a path, without following a link; -1 with errno.
///
/// Without the times: reading a file's times makes its next write set new ones, which costs a
/// commit of the file system's journal (multigrain timestamps, Linux 6.13).
int clinux_file_number(const char *path, uint64_t *device, uint64_t *inode);

/// Extended attributes of an open file: fgetxattr, fsetxattr, fremovexattr.
ssize_t clinux_get_attribute(int descriptor, const char *name, void *value, size_t size);
int clinux_set_attribute(int descriptor, const char *name, const void *value, size_t size);
int clinux_remove_attribute(int descriptor, const char *name);
/// Removes the access control lists of an open file or directory (acl(5)); none is no error. On Darwin a new
/// file inherits only lists that are marked so, and they are left.
int clinux_remove_access_lists(int descriptor);

/// A descriptor that names a file without opening it (O_PATH). Unlike any other, closing it keeps
/// the POSIX locks that this process holds on the file; on Darwin it does not, so it is for directories there.
int clinux_open_place(const char *path);
/// Inode of a file and its birth time, as clinux_birth_time has it, without dropping the POSIX locks that
/// this process holds on the file. 0, or -1 with errno.
int clinux_identify_file(const char *path, uint64_t *inode, int64_t *birth_time);

/// Opens a directory by its name in another one, close-on-exec, without following links. One that
/// is on the way to another is only named (O_PATH), which needs no permission to read it.
int clinux_open_step(int directory, const char *name, int is_on_the_way);

/// The parts of a device's number, as /proc/locks shows them.
unsigned clinux_device_major(dev_t device);
unsigned clinux_device_minor(dev_t device);
/// The magic number of the file system (statfs(2)) of a descriptor; -1 with errno. On Darwin 0 for one of this
/// machine's disks, and 1 for any other.
int64_t clinux_file_system_type(int descriptor);

/// Releases a lock of `clinux_lock`, even if other descriptors of the same open file exist.
void clinux_unlock(int descriptor);

/// Whether a pipe that was opened with O_NONBLOCK has bytes, a process that may write some, or has had one; waits
/// at most so many milliseconds for that. 1 or 0. On Darwin 0 also if that process has written nothing yet.
int clinux_has_writer(int pipe, int milliseconds);

/// Takes an open-file-description lock on the complete file; on Darwin one of flock(2). 0 if it was taken,
/// otherwise -1 with errno.
int clinux_lock(int descriptor);
/// Whether somebody else holds such a lock on the file: 1, 0, or -1 with errno. Takes no lock;
/// on Darwin for a moment, in which somebody else cannot take it.
int clinux_is_locked(int descriptor);

/// Takes a lock of flock(2), which locks of fcntl(2) ignore; nothing on Darwin, where the two exclude each other.
/// 0 if it was taken, otherwise -1 with errno.
int clinux_hold(int descriptor);

/// openat2 with RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS and RESOLVE_NO_MAGICLINKS, and close-on-exec:
/// the opened file is below `directory`, and no link was followed. If openat2 is not available,
/// opens step by step.
int clinux_open_beneath(int directory, const char *path, int flags);
/// The same step by step, where there is no openat2.
int clinux_open_steps(int directory, const char *path, int flags);
/// close(2) that leaves errno as it is; does nothing with a negative descriptor.
void clinux_close(int descriptor);

/// Makes a file or directory durable: fsync(2). On Darwin that leaves it in the disk's cache, so this is
/// F_FULLFSYNC there. 0, or -1 with errno.
int clinux_sync(int descriptor);
/// The same for the contents of a file, without times that nothing needs: fdatasync(2).
int clinux_sync_data(int descriptor);
/// Reserves the blocks of the first bytes of a file, which becomes as long (posix_fallocate(3)). 0, or the number
/// of the error.
int clinux_allocate(int descriptor, off_t byte_count);

/// Makes everything durable that was written to the file system of `descriptor` (syncfs(2)). 0, or
/// -1 with errno.
int clinux_sync_file_system(int descriptor);

/// Begins to write a file to its disk, so that a later sync of it is short (sync_file_range(2)). Nothing
/// is durable by that. On Darwin it does nothing.
void clinux_begin_writing(int descriptor);

enum { CLINUX_RENAME_NOREPLACE = 1, CLINUX_RENAME_EXCHANGE = 2 };
int clinux_rename(
    int from_directory, const char *from, int to_directory, const char *to, unsigned flags
);

/// CRC-32C (Castagnoli, reflected 0x82F63B78) of `count` bytes, continuing from `crc` (0 to begin).
uint32_t clinux_crc32c(uint32_t crc, const void *bytes, size_t count);

// The current activity of a thread, for the state containers; reading it costs about a nanosecond.

/// The container whose `modify` body the calling thread is running; null outside.
extern __thread const void *clinux_thread_body;
static inline const void *clinux_body(void) { return clinux_thread_body; }
static inline void clinux_set_body(const void *container) { clinux_thread_body = container; }

/// How many changes in a row led to the one that the calling thread is delivering, including
/// itself; 0 outside.
extern __thread int64_t clinux_thread_depth;
static inline int64_t clinux_depth(void) { return clinux_thread_depth; }
static inline void clinux_set_depth(int64_t depth) { clinux_thread_depth = depth; }

/// The keyspace whose events and answers the calling thread is delivering; null outside.
extern __thread const void *clinux_thread_deliverer;
static inline const void *clinux_deliverer(void) { return clinux_thread_deliverer; }
static inline void clinux_set_deliverer(const void *keyspace) {
    clinux_thread_deliverer = keyspace;
}

/// Whether any scope of state containers was ever made in this process.
extern int clinux_scopes;
static inline int clinux_has_scopes(void) {
    return __atomic_load_n(&clinux_scopes, __ATOMIC_RELAXED);
}
static inline void clinux_note_scope(void) {
    __atomic_store_n(&clinux_scopes, 1, __ATOMIC_RELAXED);
}

/// Adds two decimal numbers in `long double` and writes the sum without an exponent and without
/// trailing zeros, at most 17 digits behind the point; an absent first one is 0.
///
/// Returns the number of characters; -1 if one of them is no number, 0 if the sum is not finite.
long clinux_add_decimals(
    const void *first, size_t first_count, const void *second, size_t second_count, char *sum,
    size_t capacity
);

/// The commit that a package was built from, in hexadecimal; empty if no package was made.
const char *clinux_commit(void);

#endif
