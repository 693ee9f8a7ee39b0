#ifndef STUB_SYS_SOCKET_H
#define STUB_SYS_SOCKET_H
#include <sys/types.h>
typedef uint8_t sa_family_t;
typedef uint32_t socklen_t;
#define AF_UNIX 1
#define SOCK_STREAM 1
#define SOCK_DGRAM 2
#define SOL_SOCKET 0xffff
#define SO_SNDTIMEO 0x1005
#define SO_RCVTIMEO 0x1006
#define SO_ERROR 0x1007
#define SO_NOSIGPIPE 0x1022
#define MSG_PEEK 0x2
#define MSG_DONTWAIT 0x80
struct sockaddr {
    uint8_t sa_len;
    sa_family_t sa_family;
    char sa_data[14];
};
int socket(int family, int type, int protocol);
int connect(int socket, const struct sockaddr *address, socklen_t size);
int setsockopt(int socket, int level, int name, const void *value, socklen_t size);
int getsockopt(int socket, int level, int name, void *restrict value, socklen_t *restrict size);
ssize_t send(int socket, const void *bytes, size_t count, int flags);
ssize_t recv(int socket, void *bytes, size_t count, int flags);
int shutdown(int socket, int how);
#endif
