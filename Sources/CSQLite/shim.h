#include <sqlite3.h>

/// sqlite3_db_config takes variable arguments, which Swift cannot pass: whether closing the last connection
/// leaves the write-ahead log as it is. https://www.sqlite.org/c3ref/c_dbconfig_defensive.html
static inline int csqlite_leave_log_on_close(sqlite3 *database, int leaves) {
    return sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, leaves, (int *)0);
}
