#ifndef STUB_TIME_H
#define STUB_TIME_H
#include <sys/types.h>
typedef enum {
    _CLOCK_REALTIME = 0,
#define CLOCK_REALTIME _CLOCK_REALTIME
    _CLOCK_MONOTONIC = 6,
#define CLOCK_MONOTONIC _CLOCK_MONOTONIC
    _CLOCK_MONOTONIC_RAW = 4,
#define CLOCK_MONOTONIC_RAW _CLOCK_MONOTONIC_RAW
    _CLOCK_UPTIME_RAW = 8,
#define CLOCK_UPTIME_RAW _CLOCK_UPTIME_RAW
} clockid_t;
struct tm {
    int tm_sec, tm_min, tm_hour, tm_mday, tm_mon, tm_year, tm_wday, tm_yday, tm_isdst;
    long tm_gmtoff;
    char *tm_zone;
};
int clock_gettime(clockid_t clock, struct timespec *time);
int nanosleep(const struct timespec *wanted, struct timespec *left);
time_t time(time_t *time);
struct tm *gmtime_r(const time_t *restrict time, struct tm *restrict parts);
struct tm *localtime_r(const time_t *restrict time, struct tm *restrict parts);
time_t timegm(struct tm *parts);
#endif
