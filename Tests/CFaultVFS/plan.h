// What the files of CFaultVFS share.

#ifndef PLAN_H
#define PLAN_H

#include "CFaultVFS.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { SECTOR = 512 };

/// What a sector held at the last sync.
struct sector {
    /// A sync of it failed: only writing it again can help.
    bool is_doomed;
    unsigned char bytes[SECTOR];
};

/// A file, whichever handles are open on it.
struct file {
    struct file *next;
    char *path;
    /// Which file it is, under whichever path.
    uint64_t device, inode;
    int kind;
    /// Those that are open.
    struct handle *handles;
    /// By number; NULL where it is as it was at the last sync.
    struct sector **sectors;
    int64_t sector_count;
    /// The size at the last sync, where it is another now; else -1.
    int64_t former_size;
};

/// What SQLite takes for an open file; that of the VFS below follows.
struct handle {
    sqlite3_file base;
    struct faults *plan;
    struct file *file;
    struct handle *next;
};

static inline sqlite3_file *below(const struct handle *handle) { return (sqlite3_file *)(handle + 1); }

struct fault {
    /// Operations until it; 0: none.
    int64_t countdown;
    int files, error, how;
};

struct cut {
    struct cut *next;
    int64_t place;
    char *directory;
    uint64_t seed;
};

struct faults {
    /// Its directory and a slash.
    char *directory;
    /// Of the registry: who holds it, and the next one.
    int references;
    struct faults *next;

    atomic_llong place;
    /// Everything below is under it, and each operation on a file.
    pthread_mutex_t mutex;
    int64_t counts[FAULTS_OPERATION_COUNT];
    int64_t failed_count;
    struct fault faults[FAULTS_OPERATION_COUNT];
    struct file *files;
    /// In order of place.
    struct cut *cuts;
    int64_t cut_count;
    uint64_t random;
};

/// The plan that `path` belongs to, held; NULL where none does.
struct faults *plan_of(const char *path);
void plan_release(struct faults *plan);
/// Begins an operation: counts it, takes the cuts that are due. Says how it is to fail; nothing where `error` is 0.
struct fault plan_begin(struct faults *plan, faults_operation operation, int kind);

/// The file at `path`, which is there, known from now on, also by another path before; NULL without memory.
struct file *plan_file(struct faults *plan, const char *path);
void plan_forget(struct faults *plan, const char *path);
int file_kind(const char *path);
int64_t file_size(const struct file *file);
/// Keeps what a range holds, before it is changed. Returns a result code.
int file_remember(struct file *file, int64_t start, int64_t end, bool rewrites);
/// Everything is on disk, but for the doomed sectors.
void file_was_synced(struct file *file);
/// A sync failed: what it was for is doomed; where `reverts` is set, it is decided at once what of it is left.
void file_was_not_synced(struct file *file, bool reverts, uint64_t *random);
void file_forget(struct file *file);
/// Writes what would be left of it to `directory`. Returns whether that worked.
bool file_cut(const struct file *file, const char *directory, uint64_t seed);

uint64_t next_random(uint64_t *state);

#endif
