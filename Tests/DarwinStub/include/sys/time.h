#ifndef STUB_SYS_TIME_H
#define STUB_SYS_TIME_H
#include <sys/types.h>
int gettimeofday(struct timeval *restrict time, void *restrict zone);
#endif
