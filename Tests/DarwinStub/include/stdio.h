#ifndef STUB_STDIO_H
#define STUB_STDIO_H
#include <sys/types.h>
#define RENAME_SWAP 0x00000002
#define RENAME_EXCL 0x00000004
typedef int64_t fpos_t;
struct __sbuf {
    unsigned char *_base;
    int _size;
};
typedef struct __sFILE {
    unsigned char *_p;
    int _r;
    int _w;
    short _flags;
    short _file;
    struct __sbuf _bf;
    int _lbfsize;
    void *_cookie;
    int (*_close)(void *);
    int (*_read)(void *, char *, int);
    fpos_t (*_seek)(void *, fpos_t, int);
    int (*_write)(void *, const char *, int);
    struct __sbuf _ub;
    struct __sFILEX *_extra;
    int _ur;
    unsigned char _ubuf[3];
    unsigned char _nbuf[1];
    struct __sbuf _lb;
    int _blksize;
    fpos_t _offset;
} FILE;
FILE *fopen(const char *restrict path, const char *restrict mode);
size_t fread(void *restrict bytes, size_t size, size_t count, FILE *restrict file);
size_t fwrite(const void *restrict bytes, size_t size, size_t count, FILE *restrict file);
int fflush(FILE *file);
int ferror(FILE *file);
int fclose(FILE *file);
int rename(const char *from, const char *to);
int renameat(int from_directory, const char *from, int to_directory, const char *to);
int renameatx_np(int from_directory, const char *from, int to_directory, const char *to, unsigned int flags);
int snprintf(char *restrict text, size_t capacity, const char *restrict format, ...);
#endif
