#ifndef STUB_CRT_EXTERNS_H
#define STUB_CRT_EXTERNS_H
char ***_NSGetArgv(void);
int *_NSGetArgc(void);
char ***_NSGetEnviron(void);
#endif
