#include <stdio.h>
#include <stdlib.h>

#include "ndt_control.h"
#include "ndt_early.h"

static int checks;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static const uint64_t no_queues[NDT_MAX_PORTS];
static struct ndt_control control;
static struct ndt_early early;

/* All ports get the level of early drop that the caller points to; above 100 it is an error code. */
static int constant(void *user, const uint8_t *codes, uint32_t ports, uint8_t *levels,
                    uint8_t *early_levels)
{
    const int level = *(const int *)user;
    uint32_t port;

    (void)codes;
    for (port = 0; port < ports; port++) {
        levels[port] = 3;
        early_levels[port] = (uint8_t)level;
    }
    return level > 100 ? -level : 0;
}

static int decide(int level)
{
    return ndt_early_decide(&early, &control, no_queues, 0, constant, &level);
}

/* Packets are dropped from 1000 bytes on, flows spared for 100. */
static void start(uint32_t ports, int level)
{
    CHECK(ndt_control_init(&control, ports, 1000000, 1000000000, 1000, 1000, 0) == NDT_CONTROL_OK);
    CHECK(ndt_early_init(&early, ports, 1000, 100, 1, 7) == NDT_CONTROL_OK);
    CHECK(decide(level) == 0);
    ndt_control_apply(&control);
    ndt_early_apply(&early);
}

/* Drops of so many packets of flow 1. */
static int drops(uint32_t port, uint64_t queue, int spared, uint64_t now, int packets)
{
    int dropped = 0;

    while (packets-- > 0) {
        dropped += ndt_early_drops(&early, port, (uint16_t)port, 1, queue, spared, now);
    }
    return dropped;
}

static void too_many_ports_are_an_error(void)
{
    CHECK(ndt_early_init(&early, 0, 1, 1, 1, 1) == NDT_CONTROL_ERROR_PORTS);
    CHECK(ndt_early_init(&early, NDT_MAX_PORTS + 1, 1, 1, 1, 1) == NDT_CONTROL_ERROR_PORTS);
    CHECK(drops(0, 5000, 0, 0, 1000) == 0);
    start(2, 7);
    CHECK(drops(2, 5000, 0, 0, 1000) == 0 && drops(UINT32_MAX, 5000, 0, 0, 1000) == 0);
    CHECK(ndt_control_init(&control, 3, 1000000, 1000000000, 1000, 1000, 0) == NDT_CONTROL_OK);
    CHECK(decide(1) == NDT_CONTROL_ERROR_PORTS);
    checks++;
}

/* Vigna's reference: the first numbers from the state 1, 2, 3, 4. */
static void the_generator_is_that_of_its_authors(void)
{
    uint64_t state[4] = {1, 2, 3, 4}, zero = 1234567;

    CHECK(ndt_random(state) == 41943041u);
    CHECK(ndt_random(state) == 58720359u);
    CHECK(ndt_random(state) == UINT64_C(3588806011781223));
    CHECK(ndt_random(state) == UINT64_C(3591011842654386));
    CHECK(ndt_split_mix(&zero) == UINT64_C(6457827717110365317));
    CHECK(ndt_split_mix(&zero) == UINT64_C(3203168211198807973));
    checks++;
}

/* One packet in (gap + 1)/2 on average, and none later than the gap. */
static void gaps_are_uniform_up_to_their_level(void)
{
    static const uint32_t gaps[] = NDT_EARLY_GAPS;
    uint8_t level;

    start(1, 0);
    CHECK(drops(0, 5000, 0, 0, 100000) == 0);
    for (level = 1; level < NDT_EARLY_LEVELS; level++) {
        const int packets = 400 * (int)gaps[level];
        int since = 0, dropped = 0, packet;

        start(1, level);
        for (packet = 0; packet < packets; packet++) {
            since++;
            if (ndt_early_drops(&early, 0, 0, 1, 1000, 0, 0)) {
                CHECK(since <= (int)gaps[level]);
                since = 0;
                dropped++;
            }
        }
        /* 800 gaps with a deviation of n/sqrt(12): four standard errors are 8 %. */
        CHECK(dropped * ((int)gaps[level] + 1) > 2 * packets * 92 / 100);
        CHECK(dropped * ((int)gaps[level] + 1) < 2 * packets * 108 / 100);
    }
    checks++;
}

static void short_queues_and_spared_packets_lose_nothing(void)
{
    start(1, 7);
    CHECK(drops(0, 999, 0, 0, 1000) == 0);
    CHECK(drops(0, 1000, 1, 0, 1000) == 0);
    CHECK(drops(0, 1000, 0, 0, 1000) > 50);
    early.spare = 0;
    CHECK(drops(0, 1000, 1, 0, 1000) > 50);
    checks++;
}

static void a_flow_that_has_lost_a_packet_is_spared_for_a_while(void)
{
    start(1, 7);
    ndt_early_lost(&early, 1, 10);
    /* The second loss does not count, so that the time ends 100 after the first. */
    ndt_early_lost(&early, 1, 60);
    CHECK(drops(0, 5000, 0, 109, 1000) == 0);
    CHECK(!ndt_early_spares(&early, 2, 109));
    CHECK(drops(0, 5000, 0, 110, 1000) > 50);
    ndt_early_lost(&early, 1, 110);
    CHECK(drops(0, 5000, 0, 209, 1000) == 0);
    checks++;
}

static void a_flow_without_a_place_is_not_spared(void)
{
    uint32_t key = 0;

    start(1, 7);
    while (early.overflows == 0) {
        ndt_early_lost(&early, ++key, 10);
        CHECK(key <= NDT_LOSSES + 1);
    }
    CHECK(key > NDT_LOSS_PROBES && !ndt_early_spares(&early, key, 11));
    CHECK(ndt_early_spares(&early, 1, 11));
    ndt_early_lost(&early, key, 110);
    CHECK(early.overflows == 1 && ndt_early_spares(&early, key, 111));
    checks++;
}

static void the_same_level_again_keeps_the_gap(void)
{
    uint32_t left;

    start(2, 1);
    early.left[1] = 0;
    drops(0, 5000, 0, 0, 1);
    left = early.left[0];
    decide(1);
    ndt_early_apply(&early);
    CHECK(early.left[0] == left);
    decide(2);
    CHECK(early.levels[0] == 1);
    ndt_early_apply(&early);
    CHECK(early.levels[0] == 2 && early.left[0] == 0 && left > 0);
    checks++;
}

static void a_decision_that_fails_keeps_the_levels(void)
{
    start(2, 5);
    CHECK(decide(101) == -101);
    ndt_early_apply(&early);
    CHECK(early.levels[0] == 5 && early.levels[1] == 5);
    CHECK(decide(100) == 0);
    ndt_early_apply(&early);
    CHECK(early.levels[0] == NDT_EARLY_LEVELS - 1 && control.pending[0] == 3);
    checks++;
}

/* So many packets of a flow arrive, one after the other, at a port whose next one is due. */
static void enqueue(uint32_t key, int packets)
{
    while (packets-- > 0) {
        CHECK(ndt_early_arrives(&early, 0, 0, key, 5000, 0, 0, 0) == NDT_EARLY_PASS);
        ndt_early_enqueued(&early, 0, key);
    }
}

static void from_the_front_the_first_is_lost_where_three_wait_behind_it(void)
{
    int packet;

    start(1, 7);
    ndt_early_from_front(&early, 0);
    /* A flow of which three wait at most loses nothing, however often a packet of it is due. */
    enqueue(1, 2);
    for (packet = 0; packet < 100; packet++) {
        enqueue(1, 1);
        CHECK(!ndt_early_leaves(&early, 0, 1));
    }
    CHECK(early.left[0] == 1);
    /* The drop that is due is taken by the next flow with a fourth packet: once, its first. */
    enqueue(2, 5);
    CHECK(!ndt_early_leaves(&early, 0, 1));
    CHECK(ndt_early_leaves(&early, 0, 2) && !ndt_early_leaves(&early, 0, 2));
    /* What is pushed out does not wait any more. */
    early.left[0] = 1;
    enqueue(3, 4);
    ndt_early_expelled(&early, 0, 3);
    CHECK(!ndt_early_leaves(&early, 0, 3));
    /* What is marked is not lost, whatever waits. */
    early.left[0] = 1;
    CHECK(ndt_early_arrives(&early, 0, 0, 9, 5000, 0, 1, 0) == NDT_EARLY_MARK && early.left[0] == 0);
    checks++;
}

/* Packets of a flow in another queue do not stand behind the first of one. */
static void every_queue_of_a_flow_counts_for_itself(void)
{
    int packet;

    start(1, 7);
    ndt_early_from_front(&early, 0);
    early.left[0] = 1;
    enqueue(1, 3);
    for (packet = 0; packet < 3; packet++) {
        CHECK(ndt_early_arrives(&early, 0, 1, 1, 5000, 0, 0, 0) == NDT_EARLY_PASS);
        ndt_early_enqueued(&early, 1, 1);
    }
    CHECK(early.left[0] == 1);
    CHECK(!ndt_early_leaves(&early, 0, 1) && !ndt_early_leaves(&early, 1, 1));
    enqueue(1, 2);
    CHECK(early.left[0] != 1);
    CHECK(!ndt_early_leaves(&early, 1, 1) && ndt_early_leaves(&early, 0, 1));
    checks++;
}

/* A sender as fast as its port, of which no packet ever waits. */
static void out_of_patience_the_drop_falls_on_what_arrives(void)
{
    const uint32_t gap = ndt_early_gap(1, 7);
    uint32_t packet, number;

    for (number = 0; number < 3; number++) {
        start(1, 7);
        ndt_early_from_front(&early, number);
        early.left[0] = 1;
        for (packet = 0; packet < 2 * gap; packet++) {
            if (number > 0 && packet == number * gap) {
                break;
            }
            CHECK(ndt_early_arrives(&early, 0, 0, 1, 5000, 0, 0, 0) == NDT_EARLY_PASS);
        }
        CHECK(ndt_early_drops(&early, 0, 0, 1, 5000, 0, 0) == (number > 0));
        CHECK(early.left[0] == (number == 0));
        /* What a flow has waiting is taken first. */
        early.left[0] = 0;
        CHECK(!ndt_early_drops(&early, 0, 0, 1, 5000, 0, 0) && early.passed[0] <= 1);
        early.left[0] = 1;
        enqueue(2, 4);
        CHECK(ndt_early_leaves(&early, 0, 2) && early.left[0] == 0);
    }
    checks++;
}

/* Of a flow that the table has no place for nothing is lost, and what waits of it is counted. */
static void a_flow_that_finds_no_place_is_not_counted(void)
{
    uint32_t key = 0;
    uint64_t uncounted;
    int packet;

    start(1, 7);
    ndt_early_from_front(&early, 0);
    early.min_bytes = 10000;
    while (early.uncounted == 0) {
        enqueue(++key, 1);
        CHECK(key <= NDT_WAITINGS + 1);
    }
    CHECK(key > NDT_WAITING_PROBES);
    enqueue(key, 10);
    uncounted = early.uncounted;
    CHECK(uncounted == 11);
    early.min_bytes = 0;
    early.left[0] = 1;
    CHECK(ndt_early_arrives(&early, 0, 0, key, 5000, 0, 0, 0) == NDT_EARLY_PASS);
    for (packet = 0; packet < 11; packet++) {
        CHECK(!ndt_early_leaves(&early, 0, key));
    }
    /* Places are free again where nothing waits. */
    while (--key > 0) {
        CHECK(!ndt_early_leaves(&early, 0, key));
    }
    early.min_bytes = 10000;
    enqueue(77, 1);
    CHECK(early.uncounted == uncounted && early.waiting[0].packets <= 1);
    checks++;
}

int main(void)
{
    too_many_ports_are_an_error();
    the_generator_is_that_of_its_authors();
    gaps_are_uniform_up_to_their_level();
    short_queues_and_spared_packets_lose_nothing();
    a_flow_that_has_lost_a_packet_is_spared_for_a_while();
    a_flow_without_a_place_is_not_spared();
    the_same_level_again_keeps_the_gap();
    a_decision_that_fails_keeps_the_levels();
    from_the_front_the_first_is_lost_where_three_wait_behind_it();
    every_queue_of_a_flow_counts_for_itself();
    out_of_patience_the_drop_falls_on_what_arrives();
    a_flow_that_finds_no_place_is_not_counted();
    printf("%d checks\n", checks);
    return 0;
}
