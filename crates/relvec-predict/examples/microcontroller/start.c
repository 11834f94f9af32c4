/* What a Cortex-M4 with the C library newlib does after a reset, under an emulator that serves its files and its console. */
extern void _start(void);

static void reset(void) {
    /* The floating-point unit is off after a reset. */
    *(volatile unsigned *)0xE000ED88 |= 0xFu << 20;
    _start();
}

/* The linker places this table at address 0: where the stack begins, and where the program does. */
__attribute__((section(".vectors"))) const void *const vectors[] = {(const void *)0x20400000, (const void *)reset};
