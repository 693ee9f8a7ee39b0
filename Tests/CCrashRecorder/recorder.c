// A tracer: seccomp stops the program at the calls of `filter.c`, ptrace tells what they are, and
// this writes them down.
//
// A call is recorded when it has ended, so a record is something that is done; `begun` says where
// the call was entered. What was sent counts from its beginning, and a sync covers what was done
// before it began: neither is ever judged too kindly.
#define _GNU_SOURCE
#include "recorder.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 64

struct thread {
    pid_t id;
    int is_known;
    struct call call;
};

static struct thread threads[THREADS];

static struct thread *thread_of(pid_t id) {
    struct thread *free_one = NULL;
    for (int index = 0; index < THREADS; index++) {
        if (threads[index].id == id) return &threads[index];
        if (threads[index].id == 0 && free_one == NULL) free_one = &threads[index];
    }
    if (free_one == NULL) abort();
    memset(free_one, 0, sizeof *free_one);
    free_one->id = id;
    return free_one;
}

static void write_all(int descriptor, const void *bytes, size_t count) {
    const char *next = bytes;
    while (count > 0) {
        ssize_t written = write(descriptor, next, count);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) abort();
        next += written;
        count -= (size_t)written;
    }
}

static void put(struct recorder *recorder, struct call *call) {
    struct recorder_record *record = &call->record;
    record->path_count = (uint32_t)strlen(call->path);
    record->other_count = (uint32_t)strlen(call->other);
    record->data_count = call->data == NULL ? 0 : (uint32_t)record->length;
    if (call->data != NULL && record->kind == RECORDER_WRITE && record->length > 0 &&
        call->data[0] == 0 &&
        memcmp(call->data, call->data + 1, (size_t)record->length - 1) == 0) {
        record->is_zero = 1;
        record->data_count = 0;
    }
    write_all(recorder->log, record, sizeof *record);
    write_all(recorder->log, call->path, record->path_count);
    write_all(recorder->log, call->other, record->other_count);
    if (record->data_count > 0) write_all(recorder->log, call->data, record->data_count);
    recorder->count += 1;
}

static void entered(struct recorder *recorder, struct thread *thread) {
    struct __ptrace_syscall_info info;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, thread->id, sizeof info, &info) <= 0) return;
    struct call *call = &thread->call;
    memset(call, 0, offsetof(struct call, path));
    call->path[0] = call->other[0] = 0;
    call->record.begun = recorder->count;
    call->record.descriptor = -1;
    call_entered(recorder, call, thread->id, info.seccomp.nr, info.seccomp.args);
    // What is closed may be another file's number before the call has returned.
    if (call->record.kind == RECORDER_CLOSE) {
        put(recorder, call);
        call->record.kind = 0;
    }
}

static void left(struct recorder *recorder, struct thread *thread) {
    struct call *call = &thread->call;
    struct __ptrace_syscall_info info;
    if (call->record.kind != 0 &&
        ptrace(PTRACE_GET_SYSCALL_INFO, thread->id, sizeof info, &info) > 0 &&
        info.op == PTRACE_SYSCALL_INFO_EXIT && !info.exit.is_error &&
        call_left(call, thread->id, info.exit.rval)) {
        put(recorder, call);
    }
    call->record.kind = 0;
    free(call->data);
    call->data = NULL;
}

/// Goes on with a thread that has stopped.
static void resume(struct recorder *recorder, struct thread *thread, int status) {
    int number = WSTOPSIG(status);
    int event = status >> 16;
    enum __ptrace_request request = PTRACE_CONT;
    int delivered = 0;
    if (event == PTRACE_EVENT_SECCOMP) {
        entered(recorder, thread);
        if (thread->call.record.kind != 0) request = PTRACE_SYSCALL;
    } else if (number == (SIGTRAP | 0x80)) {
        left(recorder, thread);
    } else if (event == 0 && (number != SIGSTOP || thread->is_known)) {
        delivered = number;
    }
    thread->is_known = 1;
    ptrace(request, thread->id, 0, delivered);
}

static int follow(struct recorder *recorder, pid_t program) {
    int result = 0;
    for (;;) {
        int status;
        pid_t id = waitpid(-1, &status, __WALL);
        if (id < 0 && errno == EINTR) continue;
        if (id < 0) return result;
        struct thread *thread = thread_of(id);
        if (WIFSTOPPED(status)) {
            resume(recorder, thread, status);
            continue;
        }
        free(thread->call.data);
        thread->call.data = NULL;
        thread->id = 0;
        if (id != program) continue;
        result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
}

static void redirect(const char *output) {
    int descriptor = open(output, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(descriptor, 1);
    dup2(descriptor, 2);
    close(descriptor);
}

static pid_t start_traced(char *const arguments[], const char *output) {
    pid_t program = fork();
    if (program != 0) return program;
    redirect(output);
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    filter_install();
    execv(arguments[0], arguments);
    _exit(127);
}

/// The recorder's own process.
static int run(struct recorder *recorder, const char *output, char *const arguments[], int told) {
    pid_t program = start_traced(arguments, output);
    int status;
    if (program < 0 || waitpid(program, &status, __WALL) != program || !WIFSTOPPED(status))
        return 127;
    long options = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC |
                   PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL;
    if (ptrace(PTRACE_SETOPTIONS, program, 0, options) != 0) return 127;
    thread_of(program)->is_known = 1;
    write_all(told, &program, sizeof program);
    close(told);
    ptrace(PTRACE_CONT, program, 0, 0);
    return follow(recorder, program);
}

pid_t recorder_start(const char *log, const char *watched, const char *kept, const char *output,
                     char *const arguments[], pid_t *program) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    pid_t recorder = fork();
    if (recorder == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        struct recorder own = {
            .log = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600),
            .watched = watched,
            .kept = kept,
        };
        _exit(own.log < 0 ? 127 : run(&own, output, arguments, ends[1]));
    }
    close(ends[1]);
    ssize_t count = recorder < 0 ? 0 : read(ends[0], program, sizeof *program);
    close(ends[0]);
    return count == sizeof *program ? recorder : -1;
}

pid_t recorder_start_plain(const char *output, char *const arguments[]) {
    pid_t program = fork();
    if (program != 0) return program;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    redirect(output);
    execv(arguments[0], arguments);
    _exit(127);
}
