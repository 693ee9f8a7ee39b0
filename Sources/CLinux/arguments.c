#if defined(__linux__)

#define _GNU_SOURCE
#include "CLinux.h"

#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

static int argument_count;
static char *const *arguments;
static int has_set_root;

// The Swift runtime of a static program finds its location by /proc/self/exe; without that it ends
// the process before main, unless this variable is set. Nothing is read from that location: the
// runtime needs it only for swift-backtrace.
static const char *const root_variable = "SWIFT_ROOT";

static void stand_in_for_proc(void) {
    char byte;
    int is_static = getauxval(AT_BASE) == 0;
    if (!is_static || readlink("/proc/self/exe", &byte, 1) == 1 || getenv(root_variable)) return;
    has_set_root = setenv(root_variable, "/", 0) == 0;
}

// The C library passes the arguments of main to constructors: glibc's call_init, in its dynamic
// loader and in static programs. The Swift runtime's CommandLine is not used: it reads
// /proc/self/cmdline, and without /proc searches below `environ`, which moves when a preloaded
// library sets a variable before main; then the program silently has no arguments.
//
// The lowest priority number that a program may use: before the runtime's own constructors.
__attribute__((constructor(101))) static void keep_arguments(
    int count, char **values, char **environment) {
    (void)environment;
    argument_count = count;
    arguments = values;
    stand_in_for_proc();
}

char *const *clinux_arguments(int *count) {
    // Started commands must have the environment that this process was given.
    if (has_set_root) unsetenv(root_variable);
    has_set_root = 0;
    *count = argument_count;
    return arguments;
}

#endif
