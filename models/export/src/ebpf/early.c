
/* Out: every port's early drop; the level is a place in NDT_EARLY_GAPS. */
struct ndt_early {
    __u32 level;
    __s32 output;
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, NDT_MAX_PORTS);
    __type(key, __u32);
    __type(value, struct ndt_early);
} ndt_earlies SEC(".maps");

static __s32 early_result;

static __always_inline void set_early(__u32 port)
{
    const __u32 key = port;
    struct ndt_early early = { 0, early_result };
    for (__u32 edge = 0; edge < NDT_EARLY_LEVELS - 1; edge++)
        early.level += early_result >= early_edges[edge];
    bpf_map_update_elem(&ndt_earlies, &key, &early, BPF_ANY);
}
