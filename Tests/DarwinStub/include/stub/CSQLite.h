#undef __linux__
#undef linux
#define __APPLE__ 1
#include "../../../../Sources/CSQLite/shim.h"
