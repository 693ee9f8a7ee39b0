// What the machine allows for durable writes: receives requests on a Unix socket, appends each batch as one frame with a checksum to a
// preallocated file, syncs it with fdatasync, and answers. It keeps no values. For the row `limit` of scripts/bench --steady.
//
//   cc -O2 -msse4.2 limit.c -o limit && ./limit SOCKET FILE
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FILE_BYTES = 64 << 20, MOST_CLIENTS = 1024, INPUT_BYTES = 64 << 10, BLOCK_BYTES = 4096 };

// A client, what it has sent of a request that is not whole, and how many requests wait for their answer.
struct client {
    int descriptor, waiting;
    size_t count;
    char input[INPUT_BYTES];
};

static struct client *clients[MOST_CLIENTS];
static char *frame;
static size_t frame_bytes;
static off_t place;

static void fail(const char *what) {
    fprintf(stderr, "limit: %s: %s\n", what, strerror(errno));
    exit(1);
}

// CRC-32C.
static uint32_t checksum(const char *bytes, size_t count) {
    uint32_t sum = ~0u;
#ifdef __SSE4_2__
    for (; count >= 8; bytes += 8, count -= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        sum = (uint32_t)__builtin_ia32_crc32di(sum, word);
    }
#endif
    for (; count > 0; bytes++, count--) {
        sum ^= (unsigned char)*bytes;
        for (int bit = 0; bit < 8; bit++) sum = sum >> 1 ^ (sum & 1 ? 0x82f63b78 : 0);
    }
    return ~sum;
}

// The length of the request at the start of some bytes; 0 if it is not whole.
static size_t request_bytes(const char *bytes, size_t count) {
    const char *at = bytes, *end = bytes + count;
    if (count < 4 || *at != '*') return 0;
    int left = atoi(at + 1);
    at = memchr(at, '\n', (size_t)(end - at));
    while (at && left-- > 0) {
        at++;
        const char *line = memchr(at, '\n', (size_t)(end - at));
        if (!line) return 0;
        at = line + atoi(at + 1) + 2;
        if (at >= end) return 0;
    }
    return at ? (size_t)(at + 1 - bytes) : 0;
}

// Takes what a client has sent; returns whether it is still there.
static int receive(struct client *client) {
    ssize_t count = read(client->descriptor, client->input + client->count, INPUT_BYTES - client->count);
    if (count <= 0) return count < 0 && errno == EAGAIN;
    client->count += (size_t)count;
    // Who waits until it answers sends PING, and nothing else.
    if (client->count >= 2 && client->input[1] == '1') {
        client->count = 0;
        return write(client->descriptor, "+PONG\r\n", 7) == 7;
    }
    size_t taken = 0, length;
    while ((length = request_bytes(client->input + taken, client->count - taken)) > 0) {
        taken += length;
        client->waiting++;
    }
    memcpy(frame + frame_bytes, client->input, taken);
    frame_bytes += taken;
    client->count -= taken;
    memmove(client->input, client->input + taken, client->count);
    return 1;
}

// Appends the frame in whole blocks, and waits until it is durable.
static void commit(int file) {
    if (frame_bytes == 8) return;
    uint32_t head[2] = {(uint32_t)frame_bytes, checksum(frame + 8, frame_bytes - 8)};
    memcpy(frame, head, 8);
    size_t count = (frame_bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
    memset(frame + frame_bytes, 0, count - frame_bytes);
    if (place + (off_t)count > FILE_BYTES) place = 0;
    if (pwrite(file, frame, count, place) != (ssize_t)count) fail("pwrite");
    if (fdatasync(file) != 0) fail("fdatasync");
    place += (off_t)(frame_bytes / BLOCK_BYTES * BLOCK_BYTES);
    frame_bytes = 8;
}

static void answer(struct client *client) {
    static const char ok[] = "+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n";
    while (client->waiting > 0) {
        int count = client->waiting > 16 ? 16 : client->waiting;
        if (write(client->descriptor, ok, (size_t)count * 5) != count * 5) return;
        client->waiting -= count;
    }
}

int main(int argc, char **argv) {
    if (argc != 3) return fprintf(stderr, "usage: limit SOCKET FILE\n"), 2;
    int file = open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0) fail(argv[2]);
    char *zeros = calloc(1, 1 << 20);
    for (off_t at = 0; at < FILE_BYTES; at += 1 << 20)
        if (pwrite(file, zeros, 1 << 20, at) != 1 << 20) fail("pwrite");
    if (fsync(file) != 0) fail("fsync");
    frame = malloc((size_t)MOST_CLIENTS * INPUT_BYTES + BLOCK_BYTES);
    frame_bytes = 8;

    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", argv[1]);
    unlink(argv[1]);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 511) != 0) fail(argv[1]);
    int poll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[MOST_CLIENTS];
    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int count = epoll_wait(poll, events, MOST_CLIENTS, -1);
        for (int index = 0; index < count; index++) {
            int descriptor = events[index].data.fd;
            if (descriptor == listener) {
                int made = accept4(listener, 0, 0, SOCK_NONBLOCK | SOCK_CLOEXEC);
                if (made < 0 || made >= MOST_CLIENTS) fail("accept");
                clients[made] = calloc(1, sizeof(struct client));
                clients[made]->descriptor = made;
                event.data.fd = made;
                epoll_ctl(poll, EPOLL_CTL_ADD, made, &event);
            } else if (!receive(clients[descriptor])) {
                free(clients[descriptor]);
                clients[descriptor] = 0;
                close(descriptor);
            }
        }
        commit(file);
        for (int index = 0; index < count; index++) {
            struct client *client = events[index].data.fd == listener ? 0 : clients[events[index].data.fd];
            if (client) answer(client);
        }
    }
}
