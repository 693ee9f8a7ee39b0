#define _GNU_SOURCE
#include "plan.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static struct faults *plans;

faults *faults_begin(const char *directory) {
    faults *plan = calloc(1, sizeof *plan);
    if (plan == NULL) return NULL;
    size_t length = strlen(directory);
    plan->directory = malloc(length + 2);
    if (plan->directory == NULL) {
        free(plan);
        return NULL;
    }
    memcpy(plan->directory, directory, length);
    memcpy(plan->directory + length, "/", 2);
    plan->references = 1;
    pthread_mutex_init(&plan->mutex, NULL);
    pthread_mutex_lock(&registry);
    plan->next = plans;
    plans = plan;
    pthread_mutex_unlock(&registry);
    return plan;
}

void faults_end(faults *plan) {
    pthread_mutex_lock(&registry);
    for (struct faults **link = &plans; *link != NULL; link = &(*link)->next) {
        if (*link != plan) continue;
        *link = plan->next;
        break;
    }
    pthread_mutex_unlock(&registry);
    plan_release(plan);
}

struct faults *plan_of(const char *path) {
    if (path == NULL) return NULL;
    pthread_mutex_lock(&registry);
    struct faults *plan = plans;
    while (plan != NULL && strncmp(path, plan->directory, strlen(plan->directory)) != 0) plan = plan->next;
    if (plan != NULL) plan->references += 1;
    pthread_mutex_unlock(&registry);
    return plan;
}

void plan_release(struct faults *plan) {
    pthread_mutex_lock(&registry);
    bool is_last = --plan->references == 0;
    pthread_mutex_unlock(&registry);
    if (!is_last) return;
    while (plan->files != NULL) {
        struct file *file = plan->files;
        plan->files = file->next;
        file_forget(file);
        free(file->sectors);
        free(file->path);
        free(file);
    }
    while (plan->cuts != NULL) {
        struct cut *cut = plan->cuts;
        plan->cuts = cut->next;
        free(cut->directory);
        free(cut);
    }
    pthread_mutex_destroy(&plan->mutex);
    free(plan->directory);
    free(plan);
}

int64_t faults_place(const faults *plan) { return atomic_load(&plan->place); }

int64_t faults_count(faults *plan, faults_operation operation) {
    pthread_mutex_lock(&plan->mutex);
    int64_t count = plan->counts[operation];
    pthread_mutex_unlock(&plan->mutex);
    return count;
}

int64_t faults_failed_count(faults *plan) {
    pthread_mutex_lock(&plan->mutex);
    int64_t count = plan->failed_count;
    pthread_mutex_unlock(&plan->mutex);
    return count;
}

void faults_fail(faults *plan, faults_operation operation, int64_t number, int files, int error, int how) {
    pthread_mutex_lock(&plan->mutex);
    plan->faults[operation] = (struct fault){number, files, error, how};
    pthread_mutex_unlock(&plan->mutex);
}

void faults_heal(faults *plan) {
    pthread_mutex_lock(&plan->mutex);
    memset(plan->faults, 0, sizeof plan->faults);
    pthread_mutex_unlock(&plan->mutex);
}

int faults_cut(faults *plan, int64_t place, const char *directory, uint64_t seed) {
    struct cut *cut = calloc(1, sizeof *cut);
    if (cut == NULL) return -1;
    cut->place = place;
    cut->seed = seed;
    cut->directory = strdup(directory);
    if (cut->directory == NULL) {
        free(cut);
        return -1;
    }
    pthread_mutex_lock(&plan->mutex);
    struct cut **link = &plan->cuts;
    while (*link != NULL && (*link)->place <= place) link = &(*link)->next;
    cut->next = *link;
    *link = cut;
    pthread_mutex_unlock(&plan->mutex);
    return 0;
}

int64_t faults_cut_count(faults *plan) {
    pthread_mutex_lock(&plan->mutex);
    int64_t count = plan->cut_count;
    pthread_mutex_unlock(&plan->mutex);
    return count;
}

static void take_cut(struct faults *plan, const struct cut *cut) {
    bool is_whole = mkdir(cut->directory, 0700) == 0;
    uint64_t seed = cut->seed;
    for (const struct file *file = plan->files; file != NULL && is_whole; file = file->next)
        is_whole = file_cut(file, cut->directory, next_random(&seed));
    plan->cut_count += is_whole;
}

struct fault plan_begin(struct faults *plan, faults_operation operation, int kind) {
    // Before anything of the cut is read: what is told from here on has this place or a later one.
    int64_t place = atomic_fetch_add(&plan->place, 1) + 1;
    while (plan->cuts != NULL && plan->cuts->place <= place) {
        struct cut *cut = plan->cuts;
        plan->cuts = cut->next;
        take_cut(plan, cut);
        free(cut->directory);
        free(cut);
    }
    plan->counts[operation] += 1;
    struct fault *fault = &plan->faults[operation];
    if (fault->countdown == 0 || (fault->files & kind) == 0) return (struct fault){0};
    if (fault->countdown > 1) {
        fault->countdown -= 1;
        return (struct fault){0};
    }
    struct fault now = *fault;
    if ((fault->how & FAULTS_LASTS) == 0) fault->countdown = 0;
    plan->failed_count += 1;
    return now;
}

/// Finds a file by its path; where that is new, it may have been moved there.
static struct file *find_file(const struct faults *plan, const char *path, const struct stat *status) {
    for (struct file *file = plan->files; file != NULL; file = file->next)
        if (strcmp(file->path, path) == 0) return file;
    struct stat former;
    for (struct file *file = plan->files; file != NULL; file = file->next)
        if (file->device == status->st_dev && file->inode == status->st_ino && stat(file->path, &former) != 0)
            return file;
    return NULL;
}

struct file *plan_file(struct faults *plan, const char *path) {
    struct stat status;
    if (stat(path, &status) != 0) return NULL;
    struct file *file = find_file(plan, path, &status);
    if (file == NULL) {
        file = calloc(1, sizeof *file);
        if (file == NULL || (file->path = strdup(path)) == NULL) {
            free(file);
            return NULL;
        }
        file->former_size = -1;
        file->next = plan->files;
        plan->files = file;
    }
    // Removed and made anew behind our back: what is remembered is of another file.
    bool is_new = file->inode != status.st_ino || file->device != status.st_dev || status.st_size == 0;
    if (is_new && file->handles == NULL) file_forget(file);
    char *name = strdup(path);
    if (name == NULL) return NULL;
    free(file->path);
    file->path = name;
    file->kind = file_kind(path);
    file->device = status.st_dev;
    file->inode = status.st_ino;
    return file;
}

void plan_forget(struct faults *plan, const char *path) {
    for (struct file *file = plan->files; file != NULL; file = file->next)
        if (strcmp(file->path, path) == 0) file_forget(file);
}

/// https://prng.di.unimi.it/splitmix64.c
uint64_t next_random(uint64_t *state) {
    uint64_t bits = *state += 0x9E3779B97F4A7C15;
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB;
    return bits ^ (bits >> 31);
}
