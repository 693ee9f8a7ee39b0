#define _GNU_SOURCE
#include "plan.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool ends_with(const char *path, const char *suffix) {
    size_t length = strlen(path), end = strlen(suffix);
    return length >= end && strcmp(path + length - end, suffix) == 0;
}

int file_kind(const char *path) {
    if (ends_with(path, "-wal")) return FAULTS_LOG;
    return ends_with(path, "-journal") ? FAULTS_JOURNAL : FAULTS_DATABASE;
}

// Through a handle of SQLite's wherever there is one: closing a descriptor of our own would drop the locks that the process
// has on the database. https://www.sqlite.org/howtocorrupt.html

int64_t file_size(const struct file *file) {
    if (file->handles != NULL) {
        sqlite3_file *open = below(file->handles);
        sqlite3_int64 size = 0;
        return open->pMethods->xFileSize(open, &size) == SQLITE_OK ? size : -1;
    }
    struct stat status;
    return stat(file->path, &status) == 0 ? status.st_size : -1;
}

/// Reads a range; zeros stand behind the end of the file.
static bool read_range(const struct file *file, unsigned char *bytes, int64_t start, int count) {
    if (file->handles != NULL) {
        sqlite3_file *open = below(file->handles);
        int code = open->pMethods->xRead(open, bytes, count, start);
        return code == SQLITE_OK || code == SQLITE_IOERR_SHORT_READ;
    }
    int descriptor = open(file->path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return false;
    ssize_t got = pread(descriptor, bytes, count, start);
    close(descriptor);
    if (got < 0) return false;
    memset(bytes + got, 0, count - got);
    return true;
}

static bool make_room(struct file *file, int64_t count) {
    if (count <= file->sector_count) return true;
    int64_t wanted = count * 2;
    struct sector **sectors = realloc(file->sectors, wanted * sizeof *sectors);
    if (sectors == NULL) return false;
    memset(sectors + file->sector_count, 0, (wanted - file->sector_count) * sizeof *sectors);
    file->sectors = sectors;
    file->sector_count = wanted;
    return true;
}

int file_remember(struct file *file, int64_t start, int64_t end, bool rewrites) {
    int64_t size = file_size(file);
    if (size < 0) return SQLITE_IOERR_FSTAT;
    if (file->former_size < 0 && (rewrites ? end > size : end >= size && start < size)) file->former_size = size;
    int64_t last = (end + SECTOR - 1) / SECTOR;
    if (!make_room(file, last)) return SQLITE_NOMEM;
    for (int64_t number = start / SECTOR; number < last; number++) {
        struct sector *sector = file->sectors[number];
        if (sector == NULL) {
            sector = calloc(1, sizeof *sector);
            if (sector == NULL) return SQLITE_NOMEM;
            if (number * SECTOR < size && !read_range(file, sector->bytes, number * SECTOR, SECTOR)) {
                free(sector);
                return SQLITE_IOERR_READ;
            }
            file->sectors[number] = sector;
        } else if (rewrites) {
            sector->is_doomed = false;
        }
    }
    return SQLITE_OK;
}

void file_was_synced(struct file *file) {
    file->former_size = -1;
    for (int64_t number = 0; number < file->sector_count; number++) {
        struct sector *sector = file->sectors[number];
        if (sector == NULL || sector->is_doomed) continue;
        free(sector);
        file->sectors[number] = NULL;
    }
}

/// Decides of a sector whether it reached the disk; what is read from now on is what is there.
static void decide(struct file *file, int64_t number, int64_t size, uint64_t *random) {
    struct sector *sector = file->sectors[number];
    int64_t rest = size - number * SECTOR;
    if (next_random(random) % 2 && rest > 0 && file->handles != NULL) {
        sqlite3_file *open = below(file->handles);
        open->pMethods->xWrite(open, sector->bytes, rest < SECTOR ? (int)rest : SECTOR, number * SECTOR);
    }
    free(sector);
    file->sectors[number] = NULL;
}

void file_was_not_synced(struct file *file, bool reverts, uint64_t *random) {
    int64_t size = file_size(file);
    for (int64_t number = 0; number < file->sector_count; number++) {
        if (file->sectors[number] == NULL) continue;
        if (reverts) {
            decide(file, number, size, random);
        } else {
            file->sectors[number]->is_doomed = true;
        }
    }
}

void file_forget(struct file *file) {
    for (int64_t number = 0; number < file->sector_count; number++) {
        free(file->sectors[number]);
        file->sectors[number] = NULL;
    }
    file->former_size = -1;
}

/// One of the sizes that the file may have on disk.
static int64_t size_left(int64_t former, int64_t now, uint64_t *random) {
    if (former < 0) return now;
    int64_t least = former < now ? former : now, most = former < now ? now : former;
    switch (next_random(random) % 3) {
    case 0: return former;
    case 1: return now;
    default: {
        int64_t size = (least + (int64_t)(next_random(random) % (uint64_t)(most - least + 1))) / SECTOR * SECTOR;
        // What was synced ends anywhere in a sector.
        return size < least ? least : size;
    }
    }
}

static bool write_file(const char *directory, const char *path, const unsigned char *bytes, int64_t size) {
    char target[4096];
    const char *slash = strrchr(path, '/');
    snprintf(target, sizeof target, "%s/%s", directory, slash == NULL ? path : slash + 1);
    int descriptor = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (descriptor < 0) return false;
    int64_t written = 0;
    while (written < size) {
        ssize_t count = write(descriptor, bytes + written, size - written);
        if (count <= 0) break;
        written += count;
    }
    return close(descriptor) == 0 && written == size;
}

bool file_cut(const struct file *file, const char *directory, uint64_t seed) {
    int64_t now = file_size(file);
    // It is gone, with what was not synced of it.
    if (now < 0) return true;
    int64_t size = size_left(file->former_size, now, &seed);
    unsigned char *bytes = calloc(1, (size > now ? size : now) + SECTOR);
    if (bytes == NULL) return false;
    bool is_read = now == 0 || read_range(file, bytes, 0, (int)now);
    // None, few, half, most or all of the unsynced sectors reached the disk.
    static const unsigned shares[] = {0, 5, 50, 95, 100};
    unsigned share = shares[next_random(&seed) % 5];
    for (int64_t number = 0; number < file->sector_count && number * SECTOR < size; number++) {
        if (file->sectors[number] == NULL || next_random(&seed) % 100 < share) continue;
        memcpy(bytes + number * SECTOR, file->sectors[number]->bytes, SECTOR);
    }
    bool is_whole = is_read && write_file(directory, file->path, bytes, size);
    free(bytes);
    return is_whole;
}
