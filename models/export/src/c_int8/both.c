    for (uint32_t port = 0; port < ports; port++) {
        for (uint32_t o = 0; o < NDT_OUTPUTS; o++) {
            outputs[port * NDT_OUTPUTS + o] =
                workspace->outputs[workspace->row[port] * NDT_OUTPUTS + o];
        }
    }
    return NDT_OK;
}

static uint8_t ndt_level(int32_t output, const int32_t *edges, uint32_t count)
{
    uint8_t level = 0;
    for (uint32_t edge = 0; edge < count; edge++) {
        level = (uint8_t)(level + (output >= edges[edge]));
    }
    return level;
}

int ndt_int8_decide(struct ndt_int8_workspace *workspace, const uint8_t *codes,
                    uint32_t ports, uint8_t *levels, uint8_t *early)
{
    int32_t outputs[NDT_MAX_PORTS * NDT_OUTPUTS];
    const int result = ndt_int8_forward(workspace, codes, ports, outputs);
    if (result != NDT_OK) {
        return result;
    }
    for (uint32_t port = 0; port < ports; port++) {
        const int32_t *const own = outputs + port * NDT_OUTPUTS;
        levels[port] = ndt_level(own[0], ndt_edges, NDT_LEVELS - 1);
        early[port] = ndt_level(own[1], ndt_early_edges, NDT_EARLY_LEVELS - 1);
    }
    return NDT_OK;
}
