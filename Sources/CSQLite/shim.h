#include <sqlite3.h>

/// sqlite3_db_config takes variable arguments, which Swift cannot pass: whether closing the last connection
/// leaves SQLite's own log as it is. https://www.sqlite.org/c3ref/c_dbconfig_defensive.html
static inline int csqlite_leave_log_on_close(sqlite3 *database, int leaves) {
    return sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, leaves, (int *)0);
}

/// On Darwin fsync(2) leaves what was written in the disk's cache, and SQLite calls more than that only on request.
/// https://www.sqlite.org/pragma.html#pragma_fullfsync
static inline void csqlite_sync_to_the_disk(sqlite3 *database) {
#if defined(__APPLE__)
    sqlite3_exec(database, "PRAGMA fullfsync=1; PRAGMA checkpoint_fullfsync=1", 0, 0, 0);
#else
    (void)database;
#endif
}

/// How a file's data is synced, as csqlite_sync_to_the_disk asks for it.
#if defined(__APPLE__)
enum { CSQLITE_SYNC_DATA = SQLITE_SYNC_FULL | SQLITE_SYNC_DATAONLY };
#else
enum { CSQLITE_SYNC_DATA = SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY };
#endif

/// Syncs the database file through SQLite's own descriptor: closing another one would drop its locks.
/// https://www.sqlite.org/c3ref/c_fcntl_begin_atomic_write.html#sqlitefcntlfilepointer
static inline int csqlite_sync(sqlite3 *database) {
    sqlite3_file *file = 0;
    int code = sqlite3_file_control(database, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    if (code != SQLITE_OK) return code;
    if (!file || !file->pMethods) return SQLITE_MISUSE;
    return file->pMethods->xSync(file, CSQLITE_SYNC_DATA);
}

/// Between a file of a connection and its own methods.
struct csqlite_file_hook {
    sqlite3_io_methods methods;
    const sqlite3_io_methods *own;
    int most_unsynced, unsynced;
    void (*rest)(void);
};

static inline int csqlite_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset) {
    struct csqlite_file_hook *hook = (struct csqlite_file_hook *)file->pMethods;
    int code = hook->own->xWrite(file, bytes, count, offset);
    if (code != SQLITE_OK) return code;
    hook->rest();
    hook->unsynced += count;
    if (hook->unsynced < hook->most_unsynced) return SQLITE_OK;
    hook->unsynced = 0;
    return hook->own->xSync(file, CSQLITE_SYNC_DATA);
}

/// Syncs a file of this connection (SQLITE_FCNTL_FILE_POINTER or SQLITE_FCNTL_JOURNAL_POINTER) after `most_unsynced` bytes, and calls
/// `rest` after each write. Once for a file; the hook must outlive the connection.
static inline int csqlite_sync_pieces(
    sqlite3 *database, int which, struct csqlite_file_hook *hook, int most_unsynced, void (*rest)(void)
) {
    sqlite3_file *file = 0;
    int code = sqlite3_file_control(database, "main", which, &file);
    if (code != SQLITE_OK) return code;
    if (!file || !file->pMethods) return SQLITE_MISUSE;
    hook->own = file->pMethods;
    hook->methods = *hook->own;
    // A later version may have more of them than there is room for.
    if (hook->methods.iVersion > 3) hook->methods.iVersion = 3;
    hook->methods.xWrite = csqlite_write;
    hook->most_unsynced = most_unsynced;
    hook->rest = rest;
    hook->unsynced = 0;
    file->pMethods = &hook->methods;
    return SQLITE_OK;
}
