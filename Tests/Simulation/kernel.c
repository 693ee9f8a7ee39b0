// What a simulated process asks the system: preloaded into the real program, it lets one thread run at a time, and draws from a seed
// which one is next, whenever one calls the system or waits. Time stands still while anybody can run.
//
// The world outside of the process, a program at the other end of SIMULATION_CONTROL, is one more thread here: it is told when it
// is its turn, and says when it wants the next one. So all that happens follows from the seeds.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/// The function of the same name that the program would call.
#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(real))dlsym(RTLD_NEXT, #name)

typedef int (*condition)(void *);

enum { thread_limit = 256, outside = 1, process_number = 4242 };
static const int64_t second = 1000000000, boot = 1000 * second, wall = 1790000000 * second, forever = INT64_MAX;

/// A thread, or the world outside.
struct thread {
    int exists, has_ended, waits;
    /// What it waits for; NULL for a time alone.
    condition condition;
    void *context;
    int64_t deadline;
    uint64_t priority;
    /// Whether it may run, as a futex.
    uint32_t turn;
    pthread_t handle;
    void *(*body)(void *);
    void *argument;
};
static struct thread threads[thread_limit];
static int thread_count;
/// The number of the calling thread; -1 before the simulation begins.
static __thread int self = -1;

static int64_t now = boot;
static uint64_t random_state, trace = 1469598103934665603u;
static uint64_t step_count, step_limit = 2000000;
static int control = -1;
/// How threads are chosen: by priorities that change now and then, or each as likely as the others.
static int has_priorities;
/// Every so many writes to a file are lost without a word; 0 for none. A check that does not find that finds nothing.
static uint64_t lost_write;

static long call(long number, long a, long b, long c, long d, long e, long f) {
    static long (*real)(long, ...);
    if (!real) real = dlsym(RTLD_NEXT, "syscall");
    return real(number, a, b, c, d, e, f);
}

static uint64_t draw(void) {
    uint64_t z = (random_state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static void fold(uint64_t value) { trace = (trace ^ value) * 1099511628211u; }

/// Where each call is written, for people; -1 for nowhere.
static int record = -1;

/// Takes a call and its result into the trace.
static void note(const char *name, long argument, long result) {
    int code = errno;
    if (record >= 0) {
        char line[160];
        int count = snprintf(line, sizeof line, "%lu %ld %d %s %ld %ld\n", step_count, (long)(now - boot), self, name, argument, result);
        call(SYS_write, record, (long)line, count, 0, 0, 0);
    }
    for (; *name; name++) fold((uint8_t)*name);
    fold((uint64_t)self);
    fold((uint64_t)argument);
    fold((uint64_t)result);
    errno = code;
}

// The world outside

enum { turn = 'T', ended = 'E' };
struct message {
    int64_t kind, time;
    uint64_t steps, trace;
    /// Why it ended.
    char reason[32];
};
struct answer {
    /// In how many nanoseconds it wants its next turn.
    int64_t wait;
    /// 0: nothing; 1: the process is killed now; otherwise it gets this signal.
    int64_t signal;
};

static void tell(int kind, const char *reason) {
    struct message message = {kind, now - boot, step_count, trace, ""};
    strncpy(message.reason, reason, sizeof message.reason - 1);
    call(SYS_write, control, (long)&message, sizeof message, 0, 0, 0);
}

static void end(const char *reason) {
    tell(ended, reason);
    call(SYS_exit_group, 99, 0, 0, 0, 0, 0);
}

static void go_outside(void) {
    struct answer answer;
    tell(turn, "");
    if (call(SYS_read, control, (long)&answer, sizeof answer, 0, 0, 0) != sizeof answer) end("nobody is outside");
    fold((uint64_t)answer.wait);
    if (answer.signal == 1) {
        tell(ended, "killed");
        call(SYS_kill, call(SYS_getpid, 0, 0, 0, 0, 0, 0), SIGKILL, 0, 0, 0, 0);
    }
    if (answer.signal) call(SYS_kill, call(SYS_getpid, 0, 0, 0, 0, 0, 0), answer.signal, 0, 0, 0, 0);
    threads[outside].deadline = now + answer.wait;
}

// Whose turn it is

static void park(int number) {
    uint32_t *turn = &threads[number].turn;
    while (!__atomic_load_n(turn, __ATOMIC_ACQUIRE)) call(SYS_futex, (long)turn, FUTEX_WAIT, 0, 0, 0, 0);
    __atomic_store_n(turn, 0, __ATOMIC_RELEASE);
}

static int look(struct pollfd *files, nfds_t count) { return (int)call(SYS_poll, (long)files, (long)count, 0, 0, 0, 0); }

/// The timers that are files: the real one ends once its time has come here.
enum { timer_limit = 16 };
static struct timer {
    int file, clock;
    int64_t deadline;
} timers[timer_limit];
static int timer_count;

/// Ends the timers whose time has come.
///
/// Returns the time of the next one.
static int64_t end_timers(void) {
    int64_t earliest = forever;
    for (int i = 0; i < timer_limit; i++) {
        if (timers[i].deadline <= now && timers[i].file > 0) {
            struct itimerspec soon = {{0, 0}, {0, 1}};
            struct pollfd entry = {timers[i].file, POLLIN, 0};
            timers[i].deadline = forever;
            call(SYS_timerfd_settime, timers[i].file, 0, (long)&soon, 0, 0, 0);
            while (look(&entry, 1) == 0) {}
        }
        if (timers[i].file > 0 && timers[i].deadline < earliest) earliest = timers[i].deadline;
    }
    return earliest;
}

static int choose(void) {
    for (;;) {
        int64_t earliest = end_timers();
        int ready[thread_limit], count = 0;
        for (int i = 0; i < thread_count; i++) {
            struct thread *t = &threads[i];
            if (!t->exists || t->has_ended) continue;
            if (!t->waits || t->deadline <= now || (t->condition && t->condition(t->context))) ready[count++] = i;
            else if (t->deadline < earliest) earliest = t->deadline;
        }
        if (count) {
            int chosen = ready[draw() % (uint64_t)count];
            if (!has_priorities) return chosen;
            for (int i = 0; i < count; i++)
                if (threads[ready[i]].priority > threads[chosen].priority) chosen = ready[i];
            // Whoever was first for a while comes last.
            if (draw() % 64 == 0) threads[chosen].priority = draw() >> 32;
            return chosen;
        }
        if (earliest == forever) end("everybody waits for ever");
        now = earliest;
    }
}

/// Lets another thread run, perhaps; returns when it is the calling thread's turn again.
static void pass(void) {
    int me = self, chosen;
    for (;;) {
        if (++step_count > step_limit) end("it goes on for ever");
        // Nothing takes no time: whoever waits for a time by asking gets there.
        now += 100;
        if ((chosen = choose()) != outside) break;
        go_outside();
    }
    if (chosen == me) return;
    __atomic_store_n(&threads[chosen].turn, 1, __ATOMIC_RELEASE);
    call(SYS_futex, (long)&threads[chosen].turn, FUTEX_WAKE, 1, 0, 0, 0);
    if (!threads[me].has_ended) park(me);
}

/// Waits for a condition until a time; returns whether it holds.
static int wait_for(condition condition, void *context, int64_t deadline) {
    struct thread *me = &threads[self];
    me->waits = 1;
    me->condition = condition;
    me->context = context;
    me->deadline = deadline;
    pass();
    me->waits = 0;
    return condition && condition(context);
}

static int64_t nanoseconds(const struct timespec *time) { return time->tv_sec * second + time->tv_nsec; }
static int64_t after(const struct timespec *time) { return time ? now + nanoseconds(time) : forever; }

// Threads

static int add(void *(*body)(void *), void *argument) {
    if (thread_count == thread_limit) end("there are too many threads");
    threads[thread_count] = (struct thread){.exists = 1, .body = body, .argument = argument, .deadline = forever};
    threads[thread_count].priority = draw();
    return thread_count++;
}

static void *run(void *context) {
    self = (int)(intptr_t)context;
    park(self);
    void *result = threads[self].body(threads[self].argument);
    note("end", 0, 0);
    threads[self].has_ended = 1;
    pass();
    return result;
}

int pthread_create(pthread_t *handle, const pthread_attr_t *attributes, void *(*body)(void *), void *argument) {
    REAL(pthread_create);
    if (self < 0) return real(handle, attributes, body, argument);
    int number = add(body, argument);
    int result = real(&threads[number].handle, attributes, run, (void *)(intptr_t)number);
    *handle = threads[number].handle;
    note("create", number, result);
    pass();
    return result;
}

static int has_ended(void *thread) { return ((struct thread *)thread)->has_ended; }

int pthread_join(pthread_t handle, void **value) {
    REAL(pthread_join);
    for (int i = 0; self >= 0 && i < thread_count; i++) {
        if (i == outside || !threads[i].exists || !threads[i].body || !pthread_equal(threads[i].handle, handle)) continue;
        if (!threads[i].has_ended) wait_for(has_ended, &threads[i], forever);
        threads[i].exists = 0;
    }
    return real(handle, value);
}

// Locks

static int is_free(void *mutex) { return ((pthread_mutex_t *)mutex)->__data.__lock == 0; }

int pthread_mutex_lock(pthread_mutex_t *mutex) {
    REAL(pthread_mutex_lock);
    if (self < 0) return real(mutex);
    int result;
    while ((result = pthread_mutex_trylock(mutex)) == EBUSY) wait_for(is_free, mutex, forever);
    return result;
}

static int is_up(void *semaphore) {
    int value = 0;
    sem_getvalue(semaphore, &value);
    return value > 0;
}

static int wait_up(sem_t *semaphore, int64_t deadline) {
    static int (*real)(sem_t *);
    if (!real) real = (int (*)(sem_t *))dlsym(RTLD_NEXT, "sem_wait");
    while (!is_up(semaphore)) {
        if (wait_for(is_up, semaphore, deadline) || now < deadline) continue;
        note("sem_timedwait", 0, -1);
        errno = ETIMEDOUT;
        return -1;
    }
    note("sem_wait", 0, 0);
    return real(semaphore);
}

int sem_wait(sem_t *semaphore) {
    REAL(sem_wait);
    return self < 0 ? real(semaphore) : wait_up(semaphore, forever);
}

int sem_timedwait(sem_t *semaphore, const struct timespec *time) {
    REAL(sem_timedwait);
    return self < 0 ? real(semaphore, time) : wait_up(semaphore, nanoseconds(time) - wall);
}

int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *time) {
    REAL(sem_clockwait);
    if (self < 0) return real(semaphore, clock, time);
    return wait_up(semaphore, nanoseconds(time) - (clock == CLOCK_REALTIME ? wall : 0));
}

int sem_post(sem_t *semaphore) {
    REAL(sem_post);
    int result = real(semaphore);
    if (self < 0) return result;
    note("sem_post", 0, result);
    pass();
    return result;
}

static int has_no_owner(void *word) {
    return (__atomic_load_n((uint32_t *)word, __ATOMIC_SEQ_CST) & FUTEX_TID_MASK) == 0;
}

/// The lock of Swift's Mutex: the word has the owner, and whether others wait.
static long lock(uint32_t *word) {
    while (!has_no_owner(word)) {
        __atomic_or_fetch(word, FUTEX_WAITERS, __ATOMIC_SEQ_CST);
        wait_for(has_no_owner, word, forever);
    }
    uint32_t waiters = 0;
    for (int i = 0; i < thread_count; i++)
        if (i != self && !threads[i].has_ended && threads[i].waits && threads[i].context == word) waiters = FUTEX_WAITERS;
    *word = (uint32_t)call(SYS_gettid, 0, 0, 0, 0, 0, 0) | waiters;
    note("lock", 0, 0);
    return 0;
}

/// Those who wait on a futex, by thread.
static struct waiter {
    uint32_t *word;
    int is_woken;
} * waiters[thread_limit];

static int is_woken(void *waiter) { return ((struct waiter *)waiter)->is_woken; }

static long wait_on(uint32_t *word, uint32_t expected, int64_t deadline) {
    if (*word != expected) {
        errno = EAGAIN;
        return -1;
    }
    struct waiter waiter = {word, 0};
    waiters[self] = &waiter;
    wait_for(is_woken, &waiter, deadline);
    waiters[self] = NULL;
    note("futex wait", 0, waiter.is_woken);
    errno = ETIMEDOUT;
    return waiter.is_woken ? 0 : -1;
}

static long wake(uint32_t *word, long limit) {
    long count = 0;
    for (int i = 0; i < thread_count && count < limit; i++) {
        if (!waiters[i] || waiters[i]->word != word || waiters[i]->is_woken) continue;
        waiters[i]->is_woken = 1;
        count++;
    }
    note("futex wake", 0, count);
    pass();
    return count;
}

static long futex(uint32_t *word, int operation, long value, const struct timespec *time) {
    switch (operation & FUTEX_CMD_MASK) {
    case FUTEX_LOCK_PI: return lock(word);
    case FUTEX_TRYLOCK_PI:
        errno = EWOULDBLOCK;
        return has_no_owner(word) ? lock(word) : -1;
    case FUTEX_UNLOCK_PI:
        __atomic_store_n(word, 0, __ATOMIC_SEQ_CST);
        note("unlock", 0, 0);
        pass();
        return 0;
    case FUTEX_WAIT: return wait_on(word, (uint32_t)value, after(time));
    case FUTEX_WAIT_BITSET: return wait_on(word, (uint32_t)value, time ? nanoseconds(time) : forever);
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET: return wake(word, value);
    default: end("a futex is used in an unknown way"); return -1;
    }
}

static ssize_t fill(void *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) ((unsigned char *)bytes)[i] = (unsigned char)draw();
    return (ssize_t)count;
}

long syscall(long number, ...) {
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    if (self < 0) return call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (number == SYS_futex) return futex((uint32_t *)a[0], (int)a[1], a[2], (const struct timespec *)a[3]);
    if (number == SYS_getrandom) return fill((void *)a[0], (size_t)a[1]);
    if (number == SYS_gettid) return call(number, 0, 0, 0, 0, 0, 0);
    pass();
    long result = call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    note("syscall", number, result);
    return result;
}

ssize_t getrandom(void *bytes, size_t count, unsigned flags) {
    REAL(getrandom);
    return self < 0 ? real(bytes, count, flags) : fill(bytes, count);
}

int getentropy(void *bytes, size_t count) {
    REAL(getentropy);
    if (self < 0) return real(bytes, count);
    fill(bytes, count);
    return 0;
}

// Time

int sched_yield(void) {
    if (self >= 0) pass();
    return 0;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    REAL(clock_gettime);
    if (self < 0) return real(clock, time);
    int64_t value = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE ? now + wall : now;
    *time = (struct timespec){value / second, value % second};
    return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    struct timespec value;
    clock_gettime(CLOCK_REALTIME, &value);
    *time = (struct timeval){value.tv_sec, value.tv_nsec / 1000};
    (void)zone;
    return 0;
}

time_t time(time_t *result) {
    struct timespec value;
    clock_gettime(CLOCK_REALTIME, &value);
    if (result) *result = value.tv_sec;
    return value.tv_sec;
}

int nanosleep(const struct timespec *time, struct timespec *rest) {
    REAL(nanosleep);
    if (self < 0) return real(time, rest);
    wait_for(NULL, NULL, after(time));
    note("sleep", 0, 0);
    return 0;
}

int usleep(useconds_t count) {
    struct timespec time = {count / 1000000, count % 1000000 * 1000};
    return nanosleep(&time, NULL);
}

int timerfd_create(int clock, int flags) {
    REAL(timerfd_create);
    int file = real(clock, flags);
    if (self >= 0 && file >= 0) timers[timer_count++ % timer_limit] = (struct timer){file, clock, forever};
    return file;
}

int timerfd_settime(int file, int flags, const struct itimerspec *new, struct itimerspec *old) {
    REAL(timerfd_settime);
    if (self < 0) return real(file, flags, new, old);
    struct timer *timer = timers;
    while (timer < timers + timer_limit && timer->file != file) timer++;
    if (timer == timers + timer_limit) end("a timer is not known");
    struct itimerspec none = {{0, 0}, {0, 0}};
    real(file, 0, &none, old);
    int64_t time = nanoseconds(&new->it_value);
    timer->deadline = time == 0 ? forever
        : flags & TFD_TIMER_ABSTIME ? time - (timer->clock == CLOCK_REALTIME ? wall : 0)
                                    : now + time;
    note("timer", 0, 0);
    return 0;
}

// Files and sockets

static int is_readable(void *file) {
    struct pollfd entry = {(int)(intptr_t)file, POLLIN, 0};
    return look(&entry, 1) > 0;
}

struct polled {
    struct pollfd *files;
    nfds_t count;
};

static int has_event(void *context) {
    struct polled *polled = context;
    return look(polled->files, polled->count) > 0;
}

int poll(struct pollfd *files, nfds_t count, int milliseconds) {
    REAL(poll);
    if (self < 0) return real(files, count, milliseconds);
    pass();
    int result = look(files, count);
    if (result == 0 && milliseconds != 0) {
        struct polled polled = {files, count};
        wait_for(has_event, &polled, milliseconds < 0 ? forever : now + milliseconds * (second / 1000));
        result = look(files, count);
    }
    note("poll", (long)count, result);
    return result;
}

static int wait_for_events(int file, struct epoll_event *events, int limit, int64_t deadline) {
    pass();
    int count;
    while ((count = (int)call(SYS_epoll_wait, file, (long)events, limit, 0, 0, 0)) == 0 && now < deadline)
        wait_for(is_readable, (void *)(intptr_t)file, deadline);
    note("epoll", 0, count);
    return count;
}

int epoll_wait(int file, struct epoll_event *events, int limit, int milliseconds) {
    REAL(epoll_wait);
    if (self < 0) return real(file, events, limit, milliseconds);
    return wait_for_events(file, events, limit, milliseconds < 0 ? forever : now + milliseconds * (second / 1000));
}

int epoll_pwait2(int file, struct epoll_event *events, int limit, const struct timespec *time, const sigset_t *signals) {
    REAL(epoll_pwait2);
    return self < 0 ? real(file, events, limit, time, signals) : wait_for_events(file, events, limit, after(time));
}

static int may_wait(int file) {
    struct stat status;
    if (fstat(file, &status) || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode) || S_ISCHR(status.st_mode)) return 0;
    return !(fcntl(file, F_GETFL) & O_NONBLOCK);
}

ssize_t read(int file, void *bytes, size_t count) {
    if (self < 0) return call(SYS_read, file, (long)bytes, (long)count, 0, 0, 0);
    pass();
    if (may_wait(file) && !is_readable((void *)(intptr_t)file)) wait_for(is_readable, (void *)(intptr_t)file, forever);
    ssize_t result = call(SYS_read, file, (long)bytes, (long)count, 0, 0, 0);
    note("read", 0, result);
    return result;
}

/// A call that changes nothing here but whose turn it is.
#define POINT(type, name, parameters, arguments, argument) \
    type name parameters { \
        REAL(name); \
        if (self < 0) return real arguments; \
        pass(); \
        type result = real arguments; \
        note(#name, (long)(argument), (long)result); \
        return result; \
    }
POINT(ssize_t, write, (int file, const void *bytes, size_t count), (file, bytes, count), count)
POINT(ssize_t, pread, (int file, void *bytes, size_t count, off_t offset), (file, bytes, count, offset), offset)
POINT(ssize_t, pread64, (int file, void *bytes, size_t count, off64_t offset), (file, bytes, count, offset), offset)
POINT(ssize_t, pwrite64, (int file, const void *bytes, size_t count, off64_t offset), (file, bytes, count, offset), offset)
POINT(int, fdatasync, (int file), (file), 0)
POINT(int, fsync, (int file), (file), 0)
POINT(int, ftruncate, (int file, off_t count), (file, count), count)
POINT(int, unlink, (const char *path), (path), 0)
POINT(int, unlinkat, (int directory, const char *path, int flags), (directory, path, flags), 0)
POINT(int, rename, (const char *from, const char *to), (from, to), 0)
POINT(int, accept4, (int file, struct sockaddr *address, socklen_t *count, int flags), (file, address, count, flags), 0)
POINT(ssize_t, recvmsg, (int file, struct msghdr *message, int flags), (file, message, flags), 0)
POINT(ssize_t, sendmsg, (int file, const struct msghdr *message, int flags), (file, message, flags), 0)
POINT(ssize_t, send, (int file, const void *bytes, size_t count, int flags), (file, bytes, count, flags), count)

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
    REAL(pwrite);
    if (self < 0) return real(file, bytes, count, offset);
    pass();
    if (lost_write && draw() % lost_write == 0) return (ssize_t)count;
    ssize_t result = real(file, bytes, count, offset);
    note("pwrite", offset, result);
    return result;
}

// What differs between two runs

pid_t getpid(void) {
    REAL(getpid);
    return self < 0 ? real() : process_number;
}

int getsockopt(int file, int level, int name, void *restrict value, socklen_t *restrict count) {
    REAL(getsockopt);
    int result = real(file, level, name, value, count);
    if (self >= 0 && level == SOL_SOCKET && name == SO_PEERCRED) ((struct ucred *)value)->pid = process_number;
    return result;
}

static uint64_t number(const char *name) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : 0;
}

static void leave(void) { self = -1; }

__attribute__((constructor)) static void begin(void) {
    if (!getenv("SIMULATION_CONTROL")) return;
    control = (int)number("SIMULATION_CONTROL");
    random_state = number("SIMULATION_SEED") * 7919 + 1;
    has_priorities = draw() % 2 == 0;
    lost_write = number("SIMULATION_LOST_WRITE");
    now += (int64_t)number("SIMULATION_TIME");
    const char *path = getenv("SIMULATION_RECORD");
    if (path) record = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    // A child has no other threads, and goes its own way.
    pthread_atfork(NULL, NULL, leave);
    int first = add(NULL, NULL);
    add(NULL, NULL);
    threads[outside].waits = 1;
    threads[outside].deadline = now;
    threads[first].handle = pthread_self();
    self = first;
}

__attribute__((destructor)) static void finish(void) {
    if (self >= 0) tell(ended, "exit");
}
