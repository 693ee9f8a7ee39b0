#define _GNU_SOURCE
#include "plan.h"

#include <errno.h>
#include <string.h>

static sqlite3_vfs *unix_vfs;

// What a file does. An operation holds its plan, so that a cut sees none half done.

static struct handle *locked(sqlite3_file *file) {
    struct handle *handle = (struct handle *)file;
    pthread_mutex_lock(&handle->plan->mutex);
    return handle;
}

static int unlocked(struct handle *handle, int code) {
    int error = errno;
    pthread_mutex_unlock(&handle->plan->mutex);
    errno = error;
    return code;
}

static int close_file(sqlite3_file *file) {
    struct handle *handle = locked(file);
    for (struct handle **link = &handle->file->handles; *link != NULL; link = &(*link)->next) {
        if (*link != handle) continue;
        *link = handle->next;
        break;
    }
    int code = unlocked(handle, below(handle)->pMethods->xClose(below(handle)));
    plan_release(handle->plan);
    return code;
}

static int read_file(sqlite3_file *file, void *bytes, int count, sqlite3_int64 offset) {
    struct handle *handle = locked(file);
    return unlocked(handle, below(handle)->pMethods->xRead(below(handle), bytes, count, offset));
}

static int write_file(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset) {
    struct handle *handle = locked(file);
    struct fault fault = plan_begin(handle->plan, FAULTS_WRITE, handle->file->kind);
    int written = fault.error == 0 ? count : fault.how & FAULTS_IS_SHORT ? count / 2 : 0;
    int code = SQLITE_OK;
    if (written > 0) {
        code = file_remember(handle->file, offset, offset + written, true);
        if (code == SQLITE_OK) code = below(handle)->pMethods->xWrite(below(handle), bytes, written, offset);
    }
    if (fault.error != 0) {
        code = fault.error == ENOSPC ? SQLITE_FULL : SQLITE_IOERR_WRITE;
        errno = fault.error;
    }
    return unlocked(handle, code);
}

static int truncate_file(sqlite3_file *file, sqlite3_int64 size) {
    struct handle *handle = locked(file);
    struct fault fault = plan_begin(handle->plan, FAULTS_TRUNCATE, handle->file->kind);
    if (fault.error != 0) {
        errno = fault.error;
        return unlocked(handle, SQLITE_IOERR_TRUNCATE);
    }
    int code = file_remember(handle->file, size, file_size(handle->file), false);
    if (code == SQLITE_OK) code = below(handle)->pMethods->xTruncate(below(handle), size);
    return unlocked(handle, code);
}

static int sync_file(sqlite3_file *file, int flags) {
    struct handle *handle = locked(file);
    struct fault fault = plan_begin(handle->plan, FAULTS_SYNC, handle->file->kind);
    int code = fault.error == 0 ? below(handle)->pMethods->xSync(below(handle), flags) : SQLITE_IOERR_FSYNC;
    if (code == SQLITE_OK) {
        file_was_synced(handle->file);
    } else {
        file_was_not_synced(handle->file, fault.how & FAULTS_REVERTS, &handle->plan->random);
        if (fault.error != 0) errno = fault.error;
    }
    return unlocked(handle, code);
}

static int size_of_file(sqlite3_file *file, sqlite3_int64 *size) {
    struct handle *handle = locked(file);
    return unlocked(handle, below(handle)->pMethods->xFileSize(below(handle), size));
}

// What touches no sector is handed on.

#define BELOW(file) sqlite3_file *inner = below((struct handle *)(file))

static int lock_file(sqlite3_file *file, int level) { BELOW(file); return inner->pMethods->xLock(inner, level); }
static int unlock_file(sqlite3_file *file, int level) { BELOW(file); return inner->pMethods->xUnlock(inner, level); }
static int is_reserved(sqlite3_file *file, int *is) { BELOW(file); return inner->pMethods->xCheckReservedLock(inner, is); }
static int control(sqlite3_file *file, int what, void *value) { BELOW(file); return inner->pMethods->xFileControl(inner, what, value); }
static int sector_size(sqlite3_file *file) { BELOW(file); return inner->pMethods->xSectorSize(inner); }
static int characteristics(sqlite3_file *file) { BELOW(file); return inner->pMethods->xDeviceCharacteristics(inner); }

static int map_shared(sqlite3_file *file, int region, int size, int extends, void volatile **memory) {
    BELOW(file);
    return inner->pMethods->xShmMap(inner, region, size, extends, memory);
}

static int lock_shared(sqlite3_file *file, int offset, int count, int flags) {
    BELOW(file);
    return inner->pMethods->xShmLock(inner, offset, count, flags);
}

static void shared_barrier(sqlite3_file *file) { BELOW(file); inner->pMethods->xShmBarrier(inner); }
static int unmap_shared(sqlite3_file *file, int deletes) { BELOW(file); return inner->pMethods->xShmUnmap(inner, deletes); }

static int fetch(sqlite3_file *file, sqlite3_int64 offset, int count, void **bytes) {
    BELOW(file);
    return inner->pMethods->xFetch(inner, offset, count, bytes);
}

static int unfetch(sqlite3_file *file, sqlite3_int64 offset, void *bytes) {
    BELOW(file);
    return inner->pMethods->xUnfetch(inner, offset, bytes);
}

static const sqlite3_io_methods methods = {
    3, close_file, read_file, write_file, truncate_file, sync_file, size_of_file, lock_file, unlock_file, is_reserved,
    control, sector_size, characteristics, map_shared, lock_shared, shared_barrier, unmap_shared, fetch, unfetch,
};

// The file system.

static int open_in(struct faults *plan, const char *path, struct handle *handle, int flags, int *given) {
    struct fault fault = plan_begin(plan, FAULTS_OPEN, file_kind(path));
    if (fault.error != 0) {
        errno = fault.error;
        return SQLITE_CANTOPEN;
    }
    int code = unix_vfs->xOpen(unix_vfs, path, below(handle), flags, given);
    if (code != SQLITE_OK) return code;
    struct file *file = plan_file(plan, path);
    if (file == NULL) {
        below(handle)->pMethods->xClose(below(handle));
        return SQLITE_NOMEM;
    }
    handle->base.pMethods = &methods;
    handle->plan = plan;
    handle->file = file;
    handle->next = file->handles;
    file->handles = handle;
    return SQLITE_OK;
}

static int open_file(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *given) {
    (void)vfs;
    struct faults *plan = plan_of(path);
    // Without a plan the handle is that of the VFS below itself: its room suffices.
    if (plan == NULL) return unix_vfs->xOpen(unix_vfs, path, file, flags, given);
    struct handle *handle = (struct handle *)file;
    memset(handle, 0, sizeof *handle);
    pthread_mutex_lock(&plan->mutex);
    int code = open_in(plan, path, handle, flags, given);
    int error = errno;
    pthread_mutex_unlock(&plan->mutex);
    if (code != SQLITE_OK) plan_release(plan);
    errno = error;
    return code;
}

static int delete_in(struct faults *plan, const char *path, int syncs) {
    struct fault fault = plan_begin(plan, FAULTS_DELETE, file_kind(path));
    if (fault.error != 0) {
        errno = fault.error;
        return SQLITE_IOERR_DELETE;
    }
    int code = unix_vfs->xDelete(unix_vfs, path, syncs);
    if (code == SQLITE_OK) plan_forget(plan, path);
    return code;
}

static int delete_file(sqlite3_vfs *vfs, const char *path, int syncs) {
    (void)vfs;
    struct faults *plan = plan_of(path);
    if (plan == NULL) return unix_vfs->xDelete(unix_vfs, path, syncs);
    pthread_mutex_lock(&plan->mutex);
    int code = delete_in(plan, path, syncs);
    int error = errno;
    pthread_mutex_unlock(&plan->mutex);
    plan_release(plan);
    errno = error;
    return code;
}

static int full_path(sqlite3_vfs *vfs, const char *path, int size, char *full) {
    (void)vfs;
    return unix_vfs->xFullPathname(unix_vfs, path, size, full);
}

static int is_there(sqlite3_vfs *vfs, const char *path, int how, int *is) {
    (void)vfs;
    return unix_vfs->xAccess(unix_vfs, path, how, is);
}

static sqlite3_vfs fault_vfs;
static int registered;

static void register_once(void) {
    unix_vfs = sqlite3_vfs_find("unix");
    if (unix_vfs == NULL) {
        registered = SQLITE_ERROR;
        return;
    }
    // What is not set here reads nothing of the VFS that it is given: randomness, time, extensions, errno.
    fault_vfs = *unix_vfs;
    fault_vfs.pNext = NULL;
    fault_vfs.zName = "faults";
    fault_vfs.szOsFile = (int)sizeof(struct handle) + unix_vfs->szOsFile;
    fault_vfs.xOpen = open_file;
    fault_vfs.xDelete = delete_file;
    fault_vfs.xFullPathname = full_path;
    fault_vfs.xAccess = is_there;
    registered = sqlite3_vfs_register(&fault_vfs, 1);
}

int faults_register(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_once);
    return registered;
}
