#ifndef STUB_UNISTD_H
#define STUB_UNISTD_H
#include <sys/types.h>
#define F_OK 0
#define X_OK 1
#define W_OK 2
#define R_OK 4
#define _SC_NPROCESSORS_ONLN 58
#define STDIN_FILENO 0
#define STDOUT_FILENO 1
#define STDERR_FILENO 2
#define SYNC_VOLUME_FULLSYNC 0x01
#define SYNC_VOLUME_WAIT 0x02
// Unavailable for Swift, although Darwin has it: the library must not use it.
int fsync(int descriptor) __attribute__((availability(
    swift, unavailable, message = "clinux_sync: fsync of Darwin leaves the bytes in the disk's cache"
)));
int access(const char *path, int mode);
int faccessat(int directory, const char *path, int mode, int flags);
int close(int descriptor);
int fchown(int descriptor, uid_t user, gid_t group);
int ftruncate(int descriptor, off_t count);
int truncate(const char *path, off_t count);
int fsync_volume_np(int descriptor, int flags);
char *getcwd(char *path, size_t capacity);
gid_t getegid(void);
uid_t geteuid(void);
uid_t getuid(void);
pid_t getpid(void);
int link(const char *from, const char *to);
off_t lseek(int descriptor, off_t offset, int whence);
ssize_t pread(int descriptor, void *bytes, size_t count, off_t offset);
ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset);
ssize_t read(int descriptor, void *bytes, size_t count);
ssize_t write(int descriptor, const void *bytes, size_t count);
ssize_t readlink(const char *path, char *text, size_t capacity);
int symlink(const char *from, const char *to);
long sysconf(int name);
int unlink(const char *path);
int unlinkat(int directory, const char *path, int flags);
int rmdir(const char *path);
int usleep(useconds_t microseconds);
#endif
