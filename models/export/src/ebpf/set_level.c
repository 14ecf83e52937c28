
static __always_inline void set_level(__u32 port)
{
    const __u32 key = port;
    struct ndt_alpha alpha = { 0, result };
    for (__u32 edge = 0; edge < NDT_LEVELS - 1; edge++)
        alpha.level += result >= edges[edge];
    bpf_map_update_elem(&ndt_alphas, &key, &alpha, BPF_ANY);
}
