/* R calls R_init_relvec when it loads the library; the symbol keeps the linker from dropping the Rust part. */
#include <R_ext/Rdynload.h>

void R_init_relvec_extendr(DllInfo *dll);

void R_init_relvec(DllInfo *dll) {
    R_init_relvec_extendr(dll);
    R_useDynamicSymbols(dll, FALSE);
}
