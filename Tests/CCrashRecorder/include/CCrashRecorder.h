// Records what a program does to files and sockets, in the order in which the kernel did it.
#ifndef CCRASHRECORDER_H
#define CCRASHRECORDER_H

#include <stdint.h>
#include <sys/types.h>
// For Swift, whose Glibc lacks it.
#include <sys/xattr.h>

enum recorder_kind {
    RECORDER_OPEN = 1,       // path, argument: flags, mode, result: descriptor; inode, born
    RECORDER_CLOSE,          // descriptor
    RECORDER_DUPLICATE,      // descriptor, result: the new one
    RECORDER_WRITE,          // descriptor, offset, length, data
    RECORDER_SEND,           // descriptor, data: to a socket
    RECORDER_ACCEPT,         // result: descriptor
    RECORDER_TRUNCATE,       // descriptor, or path; length
    RECORDER_ALLOCATE,       // descriptor, argument: mode, offset, length
    RECORDER_SYNC,           // descriptor, argument: 1 for data only
    RECORDER_SYNC_ALL,       // syncfs and sync
    RECORDER_RENAME,         // path, other, argument: flags
    RECORDER_UNLINK,         // path, argument: 1 for a directory
    RECORDER_LINK,           // path, other
    RECORDER_MAKE_DIRECTORY, // path, mode
    RECORDER_SET_ATTRIBUTE,  // descriptor or path, other: name, data
    RECORDER_REMOVE_ATTRIBUTE,
    RECORDER_MODE,           // descriptor or path, mode
    RECORDER_MAP,            // path: a shared mapping that may be written
    RECORDER_UNKNOWN,        // path: the name of a system call that is not understood
};

/// One call that succeeded. Its path, its other text and its data follow it.
struct recorder_record {
    uint32_t kind;
    int32_t descriptor;
    int32_t result;
    uint32_t argument;
    uint32_t mode;
    /// Whether the data are `length` zeros, which are left out.
    uint32_t is_zero;
    int64_t offset;
    int64_t length;
    /// How many records there were when the call began; itself, if nothing else ended meanwhile.
    uint64_t begun;
    uint64_t inode;
    int64_t born;
    uint32_t path_count;
    uint32_t other_count;
    uint32_t data_count;
    uint32_t reserved;
};

/// Starts a program below a recorder, which is a process of its own and ends with it.
///
/// @param log Where the records go.
/// @param watched Of calls on paths outside of this directory nothing is recorded.
/// @param kept A file below `watched` gets another name here before it loses its last: `inode.born`.
/// @param output What the program prints.
/// @param program Its process.
/// @returns The recorder's process, whose exit status is the program's; -1 with errno.
pid_t recorder_start(const char *log, const char *watched, const char *kept, const char *output,
                     char *const arguments[], pid_t *program);

/// Starts a program without a recorder.
pid_t recorder_start_plain(const char *output, char *const arguments[]);

/// Inode and time of birth of what is at a path, as in the records.
int recorder_identify(const char *path, uint64_t *inode, int64_t *born);

#endif
