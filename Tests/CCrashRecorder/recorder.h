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

/// Copies a text of the program.
void peek_text(pid_t thread, uint64_t address, char text[PATH_MAX]);

/// Copies what a call writes, sends or sets.
void take_bytes(struct call *call, pid_t thread, uint64_t address, uint64_t count);

/// The path that a descriptor was opened by, as it is now.
void path_of(pid_t thread, int descriptor, char path[PATH_MAX]);

/// The calls with paths; returns 0 for another.
int name_entered(const struct recorder *recorder, struct call *call, pid_t thread,
                 uint64_t number, const __uint64_t *arguments);

/// Whether anybody cares for a path.
int is_watched(const struct recorder *recorder, const char *path);

#endif
