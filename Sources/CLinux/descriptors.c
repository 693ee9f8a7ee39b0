#if defined(__linux__)

#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

// The seals that make a memory file constant.
static const int sealed = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

ssize_t clinux_send_descriptors(
    int socket, const void *address, unsigned address_size, const void *bytes, size_t count,
    const int *descriptors, int descriptor_count
) {
    if (descriptor_count < 0 || descriptor_count > CLINUX_DESCRIPTORS) {
        errno = EINVAL;
        return -1;
    }
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(CLINUX_DESCRIPTORS * sizeof(int))];
    } control;
    struct iovec part = {(void *)bytes, count};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (address) {
        message.msg_name = (void *)address;
        message.msg_namelen = address_size;
    }
    if (descriptor_count > 0) {
        size_t size = (size_t)descriptor_count * sizeof(int);
        memset(&control, 0, sizeof control);
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN(size);
        memcpy(CMSG_DATA(&control.head), descriptors, size);
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(size);
    }
    ssize_t sent;
    do {
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent;
}

ssize_t clinux_receive_descriptors(
    int socket, void *bytes, size_t capacity, int *descriptors, int *descriptor_count
) {
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(CLINUX_DESCRIPTORS * sizeof(int))];
    } control;
    struct iovec part = {bytes, capacity};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
    };
    *descriptor_count = 0;
    ssize_t received;
    do {
        received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    } while (received < 0 && errno == EINTR);
    if (received < 0) return -1;
    for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
        int count = (int)((head->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        for (int index = 0; index < count; index++) {
            int descriptor;
            memcpy(&descriptor, CMSG_DATA(head) + (size_t)index * sizeof(int), sizeof descriptor);
            if (*descriptor_count < CLINUX_DESCRIPTORS) {
                descriptors[(*descriptor_count)++] = descriptor;
            } else {
                close(descriptor);
            }
        }
    }
    return received;
}

int clinux_make_memory(const char *name, const void *bytes, size_t count) {
    int file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file < 0) return -1;
    for (size_t done = 0; done < count;) {
        ssize_t written = write(file, (const char *)bytes + done, count - done);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) goto failed;
        done += (size_t)written;
    }
    if (fcntl(file, F_ADD_SEALS, sealed) == 0) return file;
failed:;
    int code = errno;
    close(file);
    errno = code;
    return -1;
}

int clinux_is_constant_memory(int file) {
    int seals = fcntl(file, F_GET_SEALS);
    return seals >= 0 && (seals & sealed) == sealed;
}

#endif
