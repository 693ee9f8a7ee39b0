#define _GNU_SOURCE
#include "CTestUsers.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

struct attempt {
    const char *path;
    uid_t uid;
    gid_t gid;
    const gid_t *groups;
    size_t count;
    int descriptor;
    int failure;
};

static int connect_socket(int descriptor, const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(address.sun_path, path);
    return connect(descriptor, (struct sockaddr *)&address, sizeof address);
}

static int connect_to(const char *path) {
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return -1;
    if (connect_socket(descriptor, path) == 0) return descriptor;
    int failure = errno;
    close(descriptor);
    errno = failure;
    return -1;
}

int ctest_connect_from_child(const char *path) {
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return -1;
    pid_t child = fork();
    if (child == 0) _exit(connect_socket(descriptor, path) == 0 ? 0 : 1);
    int status = -1;
    if (child > 0) waitpid(child, &status, 0);
    if (status == 0) return descriptor;
    close(descriptor);
    errno = ECHILD;
    return -1;
}

static void *run(void *argument) {
    struct attempt *attempt = argument;
    // glibc's functions change all threads of the process, the system calls this one alone (setresuid(2), C library/kernel differences).
    int failed = syscall(SYS_setgroups, attempt->count, attempt->groups) != 0
        || syscall(SYS_setresgid, attempt->gid, attempt->gid, attempt->gid) != 0
        || syscall(SYS_setresuid, attempt->uid, attempt->uid, attempt->uid) != 0;
    attempt->descriptor = failed ? -1 : connect_to(attempt->path);
    attempt->failure = errno;
    return NULL;
}

int ctest_connect_as(const char *path, uid_t uid, gid_t gid, const gid_t *groups, size_t count) {
    struct attempt attempt = {path, uid, gid, groups, count, -1, 0};
    pthread_t thread;
    int failure = pthread_create(&thread, NULL, run, &attempt);
    if (failure == 0) {
        pthread_join(thread, NULL);
        failure = attempt.failure;
    }
    errno = failure;
    return attempt.descriptor;
}

pid_t ctest_fork(void) { return fork(); }
