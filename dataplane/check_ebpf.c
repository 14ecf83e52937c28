/* Loads the exported BPF program, runs it through the kernel's test-run facility, and compares
   every output and level with the exported C code, bit for bit.

       check_ebpf PROGRAM.bpf.o

   Exit code 0: equal. 1: not equal, or the verifier refused the program. 77: this machine or user
   cannot load BPF programs; the reason is printed. */
#include "ndt_int8.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = NDT_HISTORY * NDT_FEATURES, SKIPPED = 77 };

#if NDT_OUTPUTS == 2
#define OUTPUTS 2
#define LEVELS(levels) levels[0], levels[1]
#else
#define OUTPUTS 1
#define LEVELS(levels) levels[0]
#endif

/* The map of each output. */
static const char *const map_names[] = { "ndt_alphas", "ndt_earlies" };

struct decided {
    uint32_t level;
    int32_t output;
};

static uint64_t state = 1;

/* xorshift64*, Vigna 2016. */
static uint8_t random_byte(void)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint8_t)((state * UINT64_C(0x2545f4914f6cdd1d)) >> 56);
}

/* Why no BPF program can be loaded here, or NULL if one can: tries the smallest there is. */
static const char *missing(void)
{
    static char reason[160];
    const struct bpf_insn nothing[] = {
        { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
        { .code = BPF_JMP | BPF_EXIT },
    };
    LIBBPF_OPTS(bpf_prog_load_opts, options, .prog_flags = BPF_F_SLEEPABLE);
    const int program = bpf_prog_load(BPF_PROG_TYPE_SYSCALL, "nothing", "GPL", nothing, 2, &options);
    if (program >= 0) {
        close(program);
        return NULL;
    }
    snprintf(reason, sizeof reason, "the kernel does not load a BPF program of type syscall: %s%s",
             strerror(-program), geteuid() == 0 ? "" : " (not root; CAP_BPF is needed)");
    return reason;
}

static int set_ports(int count_map, int port_map, const uint8_t *codes, uint32_t ports)
{
    const uint32_t zero = 0;
    if (bpf_map_update_elem(count_map, &zero, &ports, BPF_ANY) != 0) {
        return -1;
    }
    for (uint32_t port = 0; port < ports; port++) {
        if (bpf_map_update_elem(port_map, &port, codes + (size_t)port * BYTES, BPF_ANY) != 0) {
            return -1;
        }
    }
    return 0;
}

static int run(int program, int32_t *result, uint32_t *nanoseconds)
{
    struct timespec before, after;
    LIBBPF_OPTS(bpf_test_run_opts, options);
    clock_gettime(CLOCK_MONOTONIC, &before);
    const int error = bpf_prog_test_run_opts(program, &options);
    clock_gettime(CLOCK_MONOTONIC, &after);
    *result = (int32_t)options.retval;
    *nanoseconds = (uint32_t)((after.tv_sec - before.tv_sec) * 1000000000L
                              + (after.tv_nsec - before.tv_nsec));
    return error;
}

/* Differences in one case. */
static uint32_t compare(const int *maps, const uint8_t *codes, uint32_t ports)
{
    static struct ndt_int8_workspace workspace;
    static int32_t outputs[NDT_MAX_PORTS * OUTPUTS];
    static uint8_t levels[2][NDT_MAX_PORTS];
    uint32_t differences = 0;
    ndt_int8_forward(&workspace, codes, ports, outputs);
    ndt_int8_decide(&workspace, codes, ports, LEVELS(levels));
    for (uint32_t place = 0; place < ports * OUTPUTS; place++) {
        const uint32_t port = place / OUTPUTS, number = place % OUTPUTS;
        const uint8_t level = levels[number][port];
        struct decided decided;
        if (bpf_map_lookup_elem(maps[number], &port, &decided) != 0
            || decided.output != outputs[place] || decided.level != level) {
            if (differences++ < 3) {
                printf("port %u of %u, output %u: BPF has %d, level %u; C has %d, %u\n", port, ports,
                       number, decided.output, decided.level, outputs[place], level);
            }
        }
    }
    return differences;
}

static int check(struct bpf_object *object)
{
    static const uint32_t sizes[] = { 1, 4, 16, 96, NDT_MAX_PORTS };
    static uint8_t codes[NDT_MAX_PORTS * BYTES];
    const int program = bpf_program__fd(bpf_object__find_program_by_name(object, "ndt_decide"));
    const int count_map = bpf_object__find_map_fd_by_name(object, "ndt_count");
    const int port_map = bpf_object__find_map_fd_by_name(object, "ndt_ports");
    int maps[OUTPUTS];
    uint32_t compared = 0, differences = 0;
    int32_t result;
    uint32_t nanoseconds;
    for (uint32_t number = 0; number < OUTPUTS; number++) {
        maps[number] = bpf_object__find_map_fd_by_name(object, map_names[number]);
    }
    for (uint32_t size = 0; size < sizeof sizes / sizeof sizes[0]; size++) {
        const uint32_t ports = sizes[size];
        uint32_t fastest = UINT32_MAX;
        for (uint32_t round = 0; round < 20; round++) {
            for (size_t byte = 0; byte < (size_t)ports * BYTES; byte++) {
                codes[byte] = random_byte();
            }
            if (set_ports(count_map, port_map, codes, ports) != 0
                || run(program, &result, &nanoseconds) != 0 || result != NDT_OK) {
                printf("the program did not run: %s, result %d\n", strerror(errno), (int)result);
                return EXIT_FAILURE;
            }
            fastest = nanoseconds < fastest ? nanoseconds : fastest;
            differences += compare(maps, codes, ports);
            compared += ports * OUTPUTS;
        }
        printf("%u ports: %u ns a decision\n", ports, fastest);
    }
    const uint32_t zero = 0, none = 0;
    if (bpf_map_update_elem(count_map, &zero, &none, BPF_ANY) != 0
        || run(program, &result, &nanoseconds) != 0 || result != NDT_ERROR_PORTS) {
        printf("no ports: result %d instead of %d\n", (int)result, (int)NDT_ERROR_PORTS);
        return EXIT_FAILURE;
    }
    printf("%u outputs and levels compared, %u differ\n", compared, differences);
    return differences == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int count, char **arguments)
{
    if (count != 2) {
        fprintf(stderr, "usage: check_ebpf PROGRAM.bpf.o\n");
        return 2;
    }
    const char *const reason = missing();
    if (reason != NULL) {
        printf("skipped: %s\n", reason);
        return SKIPPED;
    }
    struct bpf_object *const object = bpf_object__open_file(arguments[1], NULL);
    if (object == NULL) {
        printf("%s cannot be opened: %s\n", arguments[1], strerror(errno));
        return EXIT_FAILURE;
    }
    if (bpf_object__load(object) != 0) {
        printf("the kernel refused the program: %s\n", strerror(errno));
        return EXIT_FAILURE;
    }
    printf("the verifier accepted the program\n");
    const int result = check(object);
    bpf_object__close(object);
    return result;
}
