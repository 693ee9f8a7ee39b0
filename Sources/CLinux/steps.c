#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

// A directory on the way is only named where that is possible, which needs no permission to read it.
#if defined(__APPLE__)
enum { ON_THE_WAY = O_RDONLY | O_DIRECTORY };
#else
enum { ON_THE_WAY = O_PATH | O_DIRECTORY };
#endif

void clinux_close(int descriptor) {
    if (descriptor < 0) return;
    int error = errno;
    close(descriptor);
    errno = error;
}

int clinux_open_steps(int directory, const char *path, int flags) {
    char name[NAME_MAX + 1];
    int opened = -1;
    while (1) {
        size_t length = strcspn(path, "/");
        int is_last = path[length] == 0;
        if (length == 0 || length > NAME_MAX || (length == 2 && memcmp(path, "..", 2) == 0)) {
            clinux_close(opened);
            errno = length > NAME_MAX ? ENAMETOOLONG : length == 0 ? ENOENT : EXDEV;
            return -1;
        }
        memcpy(name, path, length);
        name[length] = 0;
        int next = openat(
            opened >= 0 ? opened : directory,
            name,
            (is_last ? flags : ON_THE_WAY) | O_NOFOLLOW | O_CLOEXEC
        );
        clinux_close(opened);
        if (next < 0 || is_last) return next;
        opened = next;
        path += length + 1;
    }
}
