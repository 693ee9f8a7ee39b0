#if defined(__linux__)

#define _GNU_SOURCE
#include "CLinux.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { draft_limit = 32 };

static struct {
    int directory;
    int kind;
    char path[PATH_MAX];
} drafts[draft_limit];
/// Written last, so that the handler finds whole entries only.
static volatile sig_atomic_t draft_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/// Removes the files of a directory; returns how many there were.
///
/// readdir(3) takes memory, which a handler of a signal must not; this system call does not.
static int remove_files(int directory) {
    _Alignas(struct dirent64) char entries[4096];
    int removed = 0;
    long count;
    lseek(directory, 0, SEEK_SET);
    while ((count = syscall(SYS_getdents64, directory, entries, sizeof entries)) > 0) {
        for (long place = 0; place < count;) {
            struct dirent64 *entry = (struct dirent64 *)(entries + place);
            if (unlinkat(directory, entry->d_name, 0) == 0) removed++;
            place += entry->d_reclen;
        }
    }
    return removed;
}

int clinux_remove_directory(int directory, const char *path) {
    int opened = openat(directory, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (opened < 0) return -1;
    while (remove_files(opened) > 0) {}
    close(opened);
    return unlinkat(directory, path, AT_REMOVEDIR);
}

/// Calls only what signal-safety(7) lists, and getdents64(2).
static void remove_and_end(int number) {
    for (int index = 0; index < draft_count; index++) {
        int directory = drafts[index].directory;
        if (drafts[index].kind == 2)
            clinux_remove_directory(directory, drafts[index].path);
        else
            unlinkat(directory, drafts[index].path, drafts[index].kind == 1 ? AT_REMOVEDIR : 0);
    }
    // The signal is blocked until this returns, and ends the process then.
    signal(number, SIG_DFL);
    raise(number);
}

void clinux_remove_drafts_on_signals(void) {
    const int numbers[] = {SIGHUP, SIGINT, SIGTERM};
    struct sigaction action = {.sa_handler = remove_and_end}, before;
    sigemptyset(&action.sa_mask);
    for (int index = 0; index < 3; index++) sigaddset(&action.sa_mask, numbers[index]);
    for (int index = 0; index < 3; index++) {
        if (sigaction(numbers[index], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(numbers[index], &action, NULL);
    }
}

void clinux_draft(int directory, const char *path, int kind) {
    pthread_mutex_lock(&lock);
    if (draft_count < draft_limit && strlen(path) < PATH_MAX) {
        drafts[draft_count].directory = directory;
        drafts[draft_count].kind = kind;
        strcpy(drafts[draft_count].path, path);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        draft_count++;
    }
    pthread_mutex_unlock(&lock);
}

void clinux_forget_drafts(void) {
    pthread_mutex_lock(&lock);
    draft_count = 0;
    pthread_mutex_unlock(&lock);
}

#endif
