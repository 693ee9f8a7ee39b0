#ifndef STUB_SYS_EVENT_H
#define STUB_SYS_EVENT_H
#include <sys/types.h>
#define EVFILT_USER (-10)
#define EV_ADD 0x0001
#define EV_CLEAR 0x0020
#define NOTE_TRIGGER 0x01000000
#pragma pack(4)
struct kevent {
    uintptr_t ident;
    int16_t filter;
    uint16_t flags;
    uint32_t fflags;
    intptr_t data;
    void *udata;
};
#pragma pack()
#define EV_SET(kevp, a, b, c, d, e, f) do { \
    struct kevent *__kevp__ = (kevp); \
    __kevp__->ident = (a); \
    __kevp__->filter = (b); \
    __kevp__->flags = (c); \
    __kevp__->fflags = (d); \
    __kevp__->data = (e); \
    __kevp__->udata = (f); \
} while (0)
int kqueue(void);
int kevent(
    int queue, const struct kevent *changes, int change_count, struct kevent *events, int event_count,
    const struct timespec *timeout
);
#endif
