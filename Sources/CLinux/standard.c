#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

// A descriptor that refuses what a program does with its standard input or output.
//
// Without /dev, the root directory stands in on Linux: no descriptor of O_PATH can be read or written. A
// command that is started later does not get it, for it would lead out of a chroot.
static int open_refusing(int descriptor) {
    int opened = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
#if defined(O_PATH)
    if (opened < 0) opened = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
#endif
    return opened;
}

// Takes the descriptors 0, 1 and 2 that the parent process has closed, before anything else is opened.
//
// Otherwise the next socket or file becomes the standard output: what a program prints would go to the daemon
// as commands, or into a file of the store. /dev/null is open the wrong way round, so that reading and writing
// still fail with EBADF, as they should. glibc does the same, but only for programs with more rights than their
// caller (__libc_check_standard_fds).
//
// It is a constructor, so that no program of the package can forget it, nor one that embeds the library. The
// priority is the lowest that a program may use.
__attribute__((constructor(101))) static void take_standard_descriptors(void) {
    for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; descriptor++) {
        if (fcntl(descriptor, F_GETFD) >= 0) continue;
        // The lowest free number is the missing one: all below it are open by now.
        if (open_refusing(descriptor) != descriptor) return;
    }
}

#if defined(__linux__)
int clinux_end_output(void) {
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) return 0;
    int reason = errno ? errno : EIO;
    // An earlier write has failed, and its reason is not known any more: a pipe says whether it has a reader.
    struct pollfd pipe = {STDOUT_FILENO, 0, 0};
    if (reason == EPIPE || (poll(&pipe, 1, 0) == 1 && pipe.revents & POLLERR)) return 0;
    return reason;
}
#endif
