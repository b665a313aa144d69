#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void upper(char *text) {
    for (size_t i = 0; i < strlen(text); i++) { /* answer */
        if (text[i] >= 'a' && text[i] <= 'z') text[i] -= 32;
    }
}
int main(void) {
    size_t n = 300000;
    char *text = malloc(n + 1);
    memset(text, 'x', n);
    text[n] = 0;
    upper(text);
    printf("%c\n", text[5]);
    return 0;
}
