#include "CLinux.h"

// scripts/package replaces the section in the programs that it packs (objcopy --update-section), so
// that a commit rebuilds nothing. Volatile: the compiler must not read it when it is still empty.
#if defined(__APPLE__)
#define COMMIT_SECTION "__DATA,stated_commit"
#else
#define COMMIT_SECTION "stated_commit"
#endif
static volatile const char commit[16] __attribute__((section(COMMIT_SECTION), used)) = "";

const char *clinux_commit(void) { return (const char *)commit; }
