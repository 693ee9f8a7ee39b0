#if defined(__linux__)

#define _GNU_SOURCE
#include "CLinux.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { draft_limit = 16 };

static struct {
    int directory;
    int flags;
    char path[PATH_MAX];
} drafts[draft_limit];
/// Written last, so that the handler finds whole entries only.
static volatile sig_atomic_t draft_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/// Calls only what signal-safety(7) lists.
static void remove_and_end(int number) {
    for (int index = 0; index < draft_count; index++)
        unlinkat(drafts[index].directory, drafts[index].path, drafts[index].flags);
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

void clinux_draft(int directory, const char *path, int is_directory) {
    pthread_mutex_lock(&lock);
    if (draft_count < draft_limit && strlen(path) < PATH_MAX) {
        drafts[draft_count].directory = directory;
        drafts[draft_count].flags = is_directory ? AT_REMOVEDIR : 0;
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
