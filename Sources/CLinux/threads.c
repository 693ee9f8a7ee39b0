#include "CLinux.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

__thread const void *clinux_thread_body;
__thread int64_t clinux_thread_depth;
__thread const void *clinux_thread_deliverer;
int clinux_scopes;

int clinux_start_thread(
    uintptr_t *thread, void *(*body)(void *), void *context, size_t stack_byte_count
) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (stack_byte_count > 0) pthread_attr_setstacksize(&attributes, stack_byte_count);
    pthread_t started;
    int code = pthread_create(&started, &attributes, body, context);
    pthread_attr_destroy(&attributes);
    if (code == 0) *thread = (uintptr_t)started;
    return code;
}

void clinux_join_thread(uintptr_t thread) { pthread_join((pthread_t)thread, NULL); }

void clinux_detach_thread(uintptr_t thread) { pthread_detach((pthread_t)thread); }

uintptr_t clinux_current_thread(void) { return (uintptr_t)pthread_self(); }

int64_t clinux_thread_nanoseconds(uintptr_t thread) {
#ifdef __linux__
    clockid_t clock;
    struct timespec time;
    if (pthread_getcpuclockid((pthread_t)thread, &clock) == 0 && clock_gettime(clock, &time) == 0) {
        return time.tv_sec * 1000000000LL + time.tv_nsec;
    }
#endif
    (void)thread;
    return -1;
}

static int fork_count;

static void count_fork(void) { __atomic_add_fetch(&fork_count, 1, __ATOMIC_RELAXED); }

__attribute__((constructor)) static void count_forks(void) { pthread_atfork(NULL, NULL, count_fork); }

int clinux_fork_count(void) { return __atomic_load_n(&fork_count, __ATOMIC_RELAXED); }

static __thread const int *hurry;
static __thread int64_t gave_way_at;

void clinux_give_way(const int *until) { hurry = until; }

void clinux_set_hurry(int *flag, int now) { __atomic_store_n(flag, now, __ATOMIC_RELAXED); }

void clinux_let_others_run(void) {
    if (!hurry || __atomic_load_n(hurry, __ATOMIC_RELAXED)) return;
    // Whoever gives way may have to wait for milliseconds.
    int64_t now = clinux_monotonic_nanoseconds();
    if (now - gave_way_at < 50000) return;
    sched_yield();
    gave_way_at = clinux_monotonic_nanoseconds();
}
