static void accumulate(float *restrict sum, float factor, const float *restrict weight)
{
    uint32_t j;

    for (j = 0; j < TILE; j++)
        sum[j] += factor * weight[j];
}

/*
 * A fully connected layer for BLOCK ports, from `in` to `out`, [BLOCK][WIDEST] each.
 * weight: [tiles][inputs][TILE]; start, what the sums begin with: [tiles][TILE]
 */
static void dense(const float *weight, const float *start, uint32_t inputs, uint32_t tiles,
    int relu, const float *in, float *out)
{
    uint32_t tile, k, place, j;

    for (tile = 0; tile < tiles; tile++) {
        float sum[BLOCK][TILE];

        for (place = 0; place < BLOCK; place++)
            for (j = 0; j < TILE; j++)
                sum[place][j] = start[tile * TILE + j];
        for (k = 0; k < inputs; k++, weight += TILE)
            for (place = 0; place < BLOCK; place++)
                accumulate(sum[place], in[place * WIDEST + k], weight);
        for (place = 0; place < BLOCK; place++)
            for (j = 0; j < TILE; j++)
                out[place * WIDEST + tile * TILE + j] =
                    relu && !(sum[place][j] > 0.0f) ? 0.0f : sum[place][j];
    }
}
