
/* Numbers the distinct ports: idle ports are alike, and what is alike is computed once. A small
   table remembers one port for every hash, so that a port may be taken for a new one, never for
   another. Returns how many there are. */
static uint32_t ndt_find_distinct(struct ndt_int8_workspace *workspace, const uint8_t *codes,
                                  uint32_t ports)
{
    enum { BYTES = NDT_HISTORY * NDT_FEATURES, SLOTS = 32 };
    uint32_t table[SLOTS];
    uint32_t count = 0;
    memset(table, 0xff, sizeof table);
    for (uint32_t port = 0; port < ports; port++) {
        const uint8_t *const row = codes + (size_t)port * BYTES;
        uint64_t hash = 0, word;
        uint32_t byte = 0;
        for (; byte + 8 <= BYTES; byte += 8) {
            memcpy(&word, row + byte, 8);
            hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        }
        for (; byte < BYTES; byte++) {
            hash = (hash ^ row[byte]) * UINT64_C(0x9e3779b97f4a7c15);
        }
        uint32_t *const slot = &table[hash >> 59];
        if (*slot == UINT32_MAX
            || memcmp(row, codes + (size_t)workspace->first[*slot] * BYTES, BYTES) != 0) {
            workspace->first[count] = port;
            *slot = count++;
        }
        workspace->row[port] = *slot;
    }
    return count;
}
