// Which system calls stop the program: those that change files or names, or send.
#define _GNU_SOURCE
#include "recorder.h"
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const int traced[] = {
#ifdef SYS_open
    SYS_open, SYS_creat, SYS_rename, SYS_unlink, SYS_rmdir, SYS_mkdir, SYS_link, SYS_symlink,
    SYS_chmod, SYS_dup2,
#endif
    SYS_openat, SYS_openat2, SYS_close, SYS_close_range, SYS_dup, SYS_dup3, SYS_accept, SYS_accept4,
    SYS_write, SYS_writev, SYS_pwrite64, SYS_pwritev, SYS_pwritev2, SYS_sendto, SYS_sendmsg,
    SYS_sendmmsg, SYS_sendfile, SYS_splice, SYS_copy_file_range, SYS_ftruncate, SYS_truncate,
    SYS_fallocate, SYS_fsync, SYS_fdatasync, SYS_sync, SYS_syncfs, SYS_renameat, SYS_renameat2,
    SYS_unlinkat, SYS_linkat, SYS_symlinkat, SYS_mkdirat, SYS_setxattr, SYS_lsetxattr,
    SYS_fsetxattr, SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr, SYS_fchmod, SYS_fchmodat,
    SYS_msync, SYS_io_uring_setup, SYS_io_submit, SYS_open_by_handle_at,
};

/// One instruction more for a call of which only some are traced: those with any of the bits in an
/// argument.
static unsigned short add(struct sock_filter *code, unsigned short count, int number, int argument,
                          unsigned bits) {
    unsigned place = (unsigned)(offsetof(struct seccomp_data, args) + 8 * (unsigned)argument);
    struct sock_filter part[] = {
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, place),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    for (int index = 0; index < 5; index++) code[count++] = part[index];
    return count;
}

void filter_install(void) {
    enum { COUNT = sizeof traced / sizeof *traced };
    struct sock_filter code[2 * COUNT + 16];
    unsigned short count = 0;
    code[count++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                 offsetof(struct seccomp_data, nr));
    for (int index = 0; index < COUNT; index++) {
        code[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                     (unsigned)traced[index], 0, 1);
        code[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
    }
    count = add(code, count, SYS_mmap, 3, MAP_SHARED);
    // Of fcntl what makes another descriptor; locks are many.
    code[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 4);
    code[count++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                 offsetof(struct seccomp_data, args[1]));
    code[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_DUPFD, 1, 0);
    code[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_DUPFD_CLOEXEC, 0, 1);
    code[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
    code[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = count, .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(127);
}
