/* 1 / ports without a division: Newton's iteration from the power of two below it. */
static float reciprocal(uint32_t ports)
{
    const float x = (float)ports;
    float r = 1.0f;
    int step;

    while (r * x > 1.0f)
        r *= 0.5f;
    for (step = 0; step < 5; step++)
        r *= 2.0f - r * x;
    return r;
}

/*
 * The share of a layer that is the same for all ports: start = bias + weight * (mean of `values`).
 * values: [ports][inputs]; weight: [tiles][inputs][TILE]; bias, start: [tiles][TILE]
 */
static void share(const float *weight, const float *bias, uint32_t inputs, uint32_t tiles,
    const float *values, uint32_t ports, float *mean, float *start)
{
    const float scale = reciprocal(ports);
    uint32_t port, tile, k, j;

    for (k = 0; k < inputs; k++)
        mean[k] = 0.0f;
    for (port = 0; port < ports; port++)
        for (k = 0; k < inputs; k++)
            mean[k] += values[port * inputs + k];
    for (k = 0; k < inputs; k++)
        mean[k] *= scale;
    for (tile = 0; tile < tiles; tile++) {
        for (j = 0; j < TILE; j++)
            start[tile * TILE + j] = bias[tile * TILE + j];
        for (k = 0; k < inputs; k++, weight += TILE)
            accumulate(start + tile * TILE, mean[k], weight);
    }
}
