// What the files of the recorder share.
#ifndef RECORDER_H
#define RECORDER_H

#include "include/CCrashRecorder.h"
#include <limits.h>
#include <stddef.h>

struct recorder {
    int log;
    const char *watched;
    const char *kept;
    /// Records so far.
    uint64_t count;
};

/// A call between its beginning and its end.
struct call {
    struct recorder_record record;
    /// What it writes or sends.
    char *data;
    char path[PATH_MAX];
    char other[PATH_MAX];
};

/// Has the kernel stop this process at each call that `calls.c` knows.
void filter_install(void);

/// Reads what a call is about to do; its record's kind stays 0 if nobody cares.
void call_entered(struct recorder *recorder, struct call *call, pid_t thread, uint64_t number,
                  const __uint64_t arguments[6]);

/// Adds what a call gave; returns 0 if nothing is to be recorded.
int call_left(struct call *call, pid_t thread, int64_t result);

/// Copies bytes of the program; returns how many.
size_t peek(pid_t thread, uint64_t address, void *bytes, size_t count);

#endif
