#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* Ports that there is room for. */
#ifndef NDT_MAX_PORTS
#define NDT_MAX_PORTS 256
#endif

enum { NDT_OK = 0, NDT_ERROR_PORTS = -1, NDT_ERROR_BUSY = -2 };

/* A table of the network. The section is named because clang would put small tables into one of
   their own, which the type information of the program then gets wrong. */
#define NDT_TABLE static const __attribute__((section(".rodata")))

/* What the network sees of a port, newest step last. */
struct ndt_port {
    __u8 codes[NDT_HISTORY * NDT_FEATURES];
};

/* What it decided: alpha = 2^(level - NDT_UNIT_LEVEL). */
struct ndt_alpha {
    __u32 level;
    __s32 output;
};

/* In: the number of ports, and every port's codes. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u32);
} ndt_count SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, NDT_MAX_PORTS);
    __type(key, __u32);
    __type(value, struct ndt_port);
} ndt_ports SEC(".maps");

/* Out: every port's alpha. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, NDT_MAX_PORTS);
    __type(key, __u32);
    __type(value, struct ndt_alpha);
} ndt_alphas SEC(".maps");

/* One run at a time: the activations below are the program's own. */
static __u32 busy;
static __u32 ports;
static __u32 reciprocal;
static __u8 rows[2][NDT_WIDTH];
static __u8 kept[NDT_MAX_PORTS][NDT_KEPT];
static __s32 means[NDT_KEPT];
static __s32 result;

static __always_inline __u8 eight_bits(__s32 sum, __s32 cap, __u32 pre, __s32 multiplier,
                                       __u32 post)
{
    const __s32 positive = sum > 0 ? sum : 0;
    const __s32 clipped = (positive < cap ? positive : cap) >> pre;
    const __s32 scaled = (clipped * multiplier + (1 << (post - 1))) >> post;
    return scaled < 255 ? scaled : 255;
}

/* The mean of one activation over all ports, with eight bits after the point. */
static long __attribute__((unused)) take_mean(__u32 k, void *context)
{
    __u32 sum = 0;
    (void)context;
    if (k >= NDT_KEPT)
        return 1;
    for (__u32 port = 0; port < NDT_MAX_PORTS; port++) {
        if (port >= ports)
            break;
        sum += kept[port][k];
    }
    means[k] = (sum * reciprocal + (1u << 15)) >> 16;
    return 0;
}

