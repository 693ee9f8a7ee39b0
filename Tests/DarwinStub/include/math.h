#ifndef STUB_MATH_H
#define STUB_MATH_H
#define FP_ZERO 3
#define isnan(x) __builtin_isnan(x)
#define isinf(x) __builtin_isinf(x)
#define isfinite(x) __builtin_isfinite(x)
#define fpclassify(x) __builtin_fpclassify(1, 2, 4, 5, FP_ZERO, x)
#endif
