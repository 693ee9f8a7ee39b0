// A disk that fails, for SQLite: a VFS over the one that SQLite has.
//
// Files below a directory that has a plan are written through, and beside that the plan keeps what each 512-byte sector held
// at the file's last sync. So it can say at any time what would be on disk if power failed: what was synced, and of the
// rest any sectors. Everything else is handed on as it is.
//
// After a sync that failed, the sectors it was to make safe stay as unsafe as they are, also through a later sync that
// succeeds, until they are written again: Linux forgets them. https://lwn.net/Articles/752063/

#ifndef CFAULTVFS_H
#define CFAULTVFS_H

#include <stdint.h>

/// The plan of one directory; any thread may use it.
typedef struct faults faults;

/// What can fail.
typedef enum {
    FAULTS_OPEN,
    FAULTS_WRITE,
    FAULTS_SYNC,
    FAULTS_TRUNCATE,
    FAULTS_DELETE,
} faults_operation;

enum { FAULTS_OPERATION_COUNT = 5 };

/// Which files are meant, as bits.
enum {
    FAULTS_DATABASE = 1,
    FAULTS_LOG = 2,
    FAULTS_JOURNAL = 4,
    FAULTS_ANY_FILE = 7,
};

/// How it fails, as bits; 0: this once, and nothing was done.
enum {
    /// And so does each one after it.
    FAULTS_LASTS = 1,
    /// Half of the write is done.
    FAULTS_IS_SHORT = 2,
    /// Any of the sectors that were to be synced are as they were before, at once, and the others are on disk: the kernel
    /// dropped them, and nobody reads its cache any more.
    FAULTS_REVERTS = 4,
};

/// Makes this VFS the default, once. Connections that are open already keep theirs.
///
/// Returns a result code of SQLite.
int faults_register(void);

/// Begins a plan for the files below `directory`; NULL without memory.
faults *faults_begin(const char *directory);
/// No file comes to the plan any more; those that are open stay with it, as they were told to fail.
void faults_end(faults *plan);

/// How many operations have begun: the place of whatever is told now.
int64_t faults_place(const faults *plan);
/// How many of this kind have begun.
int64_t faults_count(faults *plan, faults_operation operation);
/// How many were made to fail.
int64_t faults_failed_count(faults *plan);

/// The operation of this kind that is the `number`th from now (1: the next) on one of `files` fails with `error`, EIO or
/// ENOSPC, and gives what the `unix` VFS would. One fault a kind; the last one that was asked for counts.
void faults_fail(faults *plan, faults_operation operation, int64_t number, int files, int error, int how);
/// Nothing fails any more.
void faults_heal(faults *plan);

/// When the operation at `place` begins, and before any of it is done, what would be on disk after a loss of power is copied
/// to `directory`, which is made. `seed` chooses the sectors. Operations go on untouched.
///
/// Returns 0, or -1 without memory.
int faults_cut(faults *plan, int64_t place, const char *directory, uint64_t seed);
/// How many of the cuts that were asked for have been taken, whole.
int64_t faults_cut_count(faults *plan);

#endif
