
/* y = rescale(start + W x) for inputs in groups of four: weight[inputs / 4][outputs][4]. Both
   numbers are padded with zero weights, to multiples of 4 and 16. */
struct ndt_dense {
    const int8_t *weight;
    uint32_t groups;
    uint32_t outputs;
    struct ndt_rescale rescale;
};

#if NDT_WIDE

static void ndt_dense_block(const struct ndt_dense *layer, const int32_t *start,
                            const uint8_t *const x[NDT_BLOCK], uint8_t *const y[NDT_BLOCK])
{
    const uint32_t outputs = layer->outputs;
    uint32_t output = 0;
    for (; output + 32 <= outputs; output += 32) {
        const int8_t *weight = layer->weight + 4 * output;
        const __m512i first = _mm512_loadu_si512(start + output);
        const __m512i second = _mm512_loadu_si512(start + output + 16);
        __m512i a0 = first, a1 = first, a2 = first, a3 = first;
        __m512i b0 = second, b1 = second, b2 = second, b3 = second;
        for (uint32_t group = 0; group < layer->groups; group++, weight += 4 * outputs) {
            const __m512i wa = _mm512_loadu_si512(weight);
            const __m512i wb = _mm512_loadu_si512(weight + 64);
            const __m512i x0 = ndt_group(x[0], group), x1 = ndt_group(x[1], group);
            const __m512i x2 = ndt_group(x[2], group), x3 = ndt_group(x[3], group);
            a0 = _mm512_dpbusd_epi32(a0, x0, wa);
            b0 = _mm512_dpbusd_epi32(b0, x0, wb);
            a1 = _mm512_dpbusd_epi32(a1, x1, wa);
            b1 = _mm512_dpbusd_epi32(b1, x1, wb);
            a2 = _mm512_dpbusd_epi32(a2, x2, wa);
            b2 = _mm512_dpbusd_epi32(b2, x2, wb);
            a3 = _mm512_dpbusd_epi32(a3, x3, wa);
            b3 = _mm512_dpbusd_epi32(b3, x3, wb);
        }
        ndt_rescale_16(a0, &layer->rescale, output, y[0]);
        ndt_rescale_16(a1, &layer->rescale, output, y[1]);
        ndt_rescale_16(a2, &layer->rescale, output, y[2]);
        ndt_rescale_16(a3, &layer->rescale, output, y[3]);
        ndt_rescale_16(b0, &layer->rescale, output + 16, y[0]);
        ndt_rescale_16(b1, &layer->rescale, output + 16, y[1]);
        ndt_rescale_16(b2, &layer->rescale, output + 16, y[2]);
        ndt_rescale_16(b3, &layer->rescale, output + 16, y[3]);
    }
    for (; output < outputs; output += 16) {
        const int8_t *weight = layer->weight + 4 * output;
        const __m512i first = _mm512_loadu_si512(start + output);
        __m512i a0 = first, a1 = first, a2 = first, a3 = first;
        for (uint32_t group = 0; group < layer->groups; group++, weight += 4 * outputs) {
            const __m512i wa = _mm512_loadu_si512(weight);
            a0 = _mm512_dpbusd_epi32(a0, ndt_group(x[0], group), wa);
            a1 = _mm512_dpbusd_epi32(a1, ndt_group(x[1], group), wa);
            a2 = _mm512_dpbusd_epi32(a2, ndt_group(x[2], group), wa);
            a3 = _mm512_dpbusd_epi32(a3, ndt_group(x[3], group), wa);
        }
        ndt_rescale_16(a0, &layer->rescale, output, y[0]);
        ndt_rescale_16(a1, &layer->rescale, output, y[1]);
        ndt_rescale_16(a2, &layer->rescale, output, y[2]);
        ndt_rescale_16(a3, &layer->rescale, output, y[3]);
    }
}

#else

#if defined(__AVX2__)
#include <immintrin.h>

/* Four inputs of a row as 16-bit numbers, four times. */
static inline __m256i ndt_group(const uint8_t *row, uint32_t group)
{
    int32_t four;
    memcpy(&four, row + 4 * group, 4);
    return _mm256_cvtepu8_epi16(_mm_set1_epi32(four));
}

/* Adds the two halves of every output's products and stores eight sums. */
static inline void ndt_store_sums(__m256i low, __m256i high, const int32_t *start, int32_t *sums)
{
    const __m256i pairs = _mm256_permute4x64_epi64(_mm256_hadd_epi32(low, high), 0xd8);
    const __m256i first = _mm256_loadu_si256((const __m256i *)(const void *)start);
    _mm256_storeu_si256((__m256i *)(void *)sums, _mm256_add_epi32(pairs, first));
}

/* vpmaddubsw would saturate, so the bytes are widened first. */
static void ndt_sums_8(const struct ndt_dense *layer, const int32_t *start, uint32_t output,
                       const uint8_t *const x[NDT_BLOCK], int32_t sums[NDT_BLOCK][8])
{
    const int8_t *weight = layer->weight + 4 * output;
    const __m256i zero = _mm256_setzero_si256();
    __m256i l0 = zero, l1 = zero, l2 = zero, l3 = zero;
    __m256i h0 = zero, h1 = zero, h2 = zero, h3 = zero;
    for (uint32_t group = 0; group < layer->groups; group++, weight += 4 * layer->outputs) {
        const __m128i *const bytes = (const __m128i *)(const void *)weight;
        const __m256i low = _mm256_cvtepi8_epi16(_mm_loadu_si128(bytes));
        const __m256i high = _mm256_cvtepi8_epi16(_mm_loadu_si128(bytes + 1));
        const __m256i x0 = ndt_group(x[0], group), x1 = ndt_group(x[1], group);
        const __m256i x2 = ndt_group(x[2], group), x3 = ndt_group(x[3], group);
        l0 = _mm256_add_epi32(l0, _mm256_madd_epi16(x0, low));
        h0 = _mm256_add_epi32(h0, _mm256_madd_epi16(x0, high));
        l1 = _mm256_add_epi32(l1, _mm256_madd_epi16(x1, low));
        h1 = _mm256_add_epi32(h1, _mm256_madd_epi16(x1, high));
        l2 = _mm256_add_epi32(l2, _mm256_madd_epi16(x2, low));
        h2 = _mm256_add_epi32(h2, _mm256_madd_epi16(x2, high));
        l3 = _mm256_add_epi32(l3, _mm256_madd_epi16(x3, low));
        h3 = _mm256_add_epi32(h3, _mm256_madd_epi16(x3, high));
    }
    ndt_store_sums(l0, h0, start + output, sums[0]);
    ndt_store_sums(l1, h1, start + output, sums[1]);
    ndt_store_sums(l2, h2, start + output, sums[2]);
    ndt_store_sums(l3, h3, start + output, sums[3]);
}

#else

static void ndt_sums_8(const struct ndt_dense *layer, const int32_t *start, uint32_t output,
                       const uint8_t *const x[NDT_BLOCK], int32_t sums[NDT_BLOCK][8])
{
    for (uint32_t row = 0; row < NDT_BLOCK; row++) {
        const int8_t *weight = layer->weight + 4 * output;
        memcpy(sums[row], start + output, sizeof sums[row]);
        for (uint32_t group = 0; group < layer->groups; group++, weight += 4 * layer->outputs) {
            const uint8_t *const four = x[row] + 4 * group;
            for (uint32_t o = 0; o < 8; o++) {
                sums[row][o] += weight[4 * o] * four[0] + weight[4 * o + 1] * four[1]
                              + weight[4 * o + 2] * four[2] + weight[4 * o + 3] * four[3];
            }
        }
    }
}

#endif

static void ndt_dense_block(const struct ndt_dense *layer, const int32_t *start,
                            const uint8_t *const x[NDT_BLOCK], uint8_t *const y[NDT_BLOCK])
{
    for (uint32_t output = 0; output < layer->outputs; output += 8) {
        int32_t sums[NDT_BLOCK][8];
        ndt_sums_8(layer, start, output, x, sums);
        for (uint32_t row = 0; row < NDT_BLOCK; row++) {
            for (uint32_t o = 0; o < 8; o++) {
                y[row][output + o] = ndt_rescale_1(sums[row][o], &layer->rescale, output + o);
            }
        }
    }
}

#endif
