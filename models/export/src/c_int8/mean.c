
/* 2^24 / ports, rounded: long division, as some targets have no instruction for it. */
static uint32_t ndt_reciprocal(uint32_t ports)
{
    uint64_t rest = (UINT64_C(1) << 24) + (ports >> 1);
    uint32_t quotient = 0;
    for (uint32_t bit = 25; bit-- > 0;) {
        const uint64_t part = (uint64_t)ports << bit;
        if (part <= rest) {
            rest -= part;
            quotient |= UINT32_C(1) << bit;
        }
    }
    return quotient;
}

/* start = bias + W mean, the mean of all ports with eight bits after the point. */
static void ndt_add_mean(const struct ndt_int8_workspace *workspace, uint32_t ports,
                         uint32_t inputs, uint32_t outputs, const int8_t *weight,
                         const int32_t *bias, int32_t *start)
{
    uint32_t sums[NDT_WIDTH] = {0};
    int32_t shares[NDT_WIDTH] = {0};
    const uint32_t reciprocal = ndt_reciprocal(ports);
    for (uint32_t port = 0; port < ports; port++) {
        const uint8_t *const kept = workspace->kept[workspace->row[port]];
        for (uint32_t k = 0; k < inputs; k++) {
            sums[k] += kept[k];
        }
    }
    for (uint32_t k = 0; k < inputs; k++) {
        const int32_t mean = (int32_t)((sums[k] * reciprocal + (UINT32_C(1) << 15)) >> 16);
        for (uint32_t o = 0; o < outputs; o++) {
            shares[o] += mean * weight[k * outputs + o];
        }
    }
    for (uint32_t o = 0; o < outputs; o++) {
        start[o] = bias[o] + ((shares[o] + 128) >> 8);
    }
}
