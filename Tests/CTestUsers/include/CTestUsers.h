// Connects to a Unix socket as another user: the kernel takes the peer's credentials from the thread that connects.

#ifndef CTESTUSERS_H
#define CTESTUSERS_H

#include <sys/types.h>

/// A connected, close-on-exec socket whose peer has these credentials, or -1 with errno; only root may.
int ctest_connect_as(const char *path, uid_t uid, gid_t gid, const gid_t *groups, size_t count);

/// fork(2), which Swift does not offer.
pid_t ctest_fork(void);

/// A connected, close-on-exec socket whose peer is a process that has ended, or -1 with errno.
int ctest_connect_from_child(const char *path);

#endif
