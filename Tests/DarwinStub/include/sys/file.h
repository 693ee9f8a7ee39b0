#ifndef STUB_SYS_FILE_H
#define STUB_SYS_FILE_H
#include <fcntl.h>
#endif
