#ifndef STUB_CTYPE_H
#define STUB_CTYPE_H
int isspace(int character);
#endif
