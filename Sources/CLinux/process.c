#if defined(__linux__)

#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// Neither is in the headers of Debian 12. SO_PEERPIDFD is Linux 6.5; its number is the same on all
// processors but parisc and sparc.
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

int clinux_peer_process(int socket) {
    int descriptor = -1;
    socklen_t size = sizeof descriptor;
    return getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &descriptor, &size) == 0 ? descriptor : -1;
}

int clinux_peer_control_groups(int socket, pid_t pid, char *text, int size) {
    int process = clinux_peer_process(socket);
    if (process < 0) return -1;
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    int count = -1;
    if (file >= 0) {
        count = (int)read(file, text, size);
        close(file);
    }
    // The number is the peer's own as long as it has not ended: then the descriptor is readable.
    struct pollfd end = {.fd = process, .events = POLLIN};
    if (poll(&end, 1, 0) != 0) count = -1;
    close(process);
    return count;
}

int clinux_process(pid_t pid) { return (int)syscall(SYS_pidfd_open, pid, 0); }

int clinux_signal_process(int process, int signal) {
    return (int)syscall(SYS_pidfd_send_signal, process, signal, NULL, 0);
}

// The command name in the second field may have blanks and parentheses; the last one ends it.
int64_t clinux_process_start(pid_t pid) {
    char path[32], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    ssize_t count = read(file, text, sizeof text - 1);
    close(file);
    if (count <= 0) return 0;
    text[count] = 0;
    char *field = strrchr(text, ')');
    // After the name come the fields from 3 on, each after a blank; the start is field 22.
    for (int number = 3; field && number <= 22; number++) field = strchr(field + 1, ' ');
    return field ? strtoll(field, NULL, 10) : 0;
}

int clinux_start_companion(int *original) {
    int process = clinux_process(getpid());
    if (process < 0) return -1;
    // Twice, so that it is no child of this process, which may become a program that waits for all
    // of its children.
    pid_t child = fork();
    if (child < 0) {
        close(process);
        return -1;
    }
    if (child > 0) {
        close(process);
        int status;
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
        return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
    }
    setsid();
    child = fork();
    if (child != 0) _exit(child < 0);
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing >= 0) {
        dup2(nothing, STDIN_FILENO);
        dup2(nothing, STDOUT_FILENO);
    }
    *original = process;
    return 1;
}

void clinux_become(char *const arguments[], char *const environment[]) {
    // What this process ignores, the program would ignore.
    signal(SIGPIPE, SIG_DFL);
    signal(SIGCHLD, SIG_DFL);
    execvpe(arguments[0], arguments, environment);
}

#endif
