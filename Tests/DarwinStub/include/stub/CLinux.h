// The compiler says which system it compiles for; here it is Linux's.
#undef __linux__
#undef linux
#define __APPLE__ 1
#include "../../../../Sources/CLinux/include/CLinux.h"
