#include "CLinux.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_decimal(const void *bytes, size_t count, long double *number) {
    // The longest sum, which has no exponent, can be read again.
    char text[5120];
    char *end;
    if (count == 0 || count >= sizeof text) return 0;
    memcpy(text, bytes, count);
    text[count] = 0;
    if (isspace((unsigned char)text[0])) return 0;
    errno = 0;
    *number = strtold(text, &end);
    if ((size_t)(end - text) != count || isnan(*number)) return 0;
    if (errno == ERANGE && (isinf(*number) || fpclassify(*number) == FP_ZERO)) return 0;
    return 1;
}

long clinux_add_decimals(
    const void *first, size_t first_count, const void *second, size_t second_count, char *sum,
    size_t capacity
) {
    long double one = 0, other = 0, total;
    if (first != NULL && !read_decimal(first, first_count, &one)) return -1;
    if (!read_decimal(second, second_count, &other)) return -1;
    total = one + other;
    if (isnan(total) || isinf(total)) return 0;
    long count = snprintf(sum, capacity, "%.17Lf", total);
    if (count < 0 || (size_t)count >= capacity) return 0;
    while (sum[count - 1] == '0') count--;
    if (sum[count - 1] == '.') count--;
    if (count == 2 && sum[0] == '-' && sum[1] == '0') {
        sum[0] = '0';
        count = 1;
    }
    return count;
}
