#include <stdio.h>
#include <stdlib.h>

#include "ndt_control.h"
#include "ndt_flows.h"

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
static struct ndt_flows flows;

/* All ports get the level that the caller points to; above 100 it is an error code instead. */
static int constant(void *user, const uint8_t *codes, uint32_t ports, uint8_t *levels)
{
    const int level = *(const int *)user;
    uint32_t port;

    (void)codes;
    for (port = 0; port < ports; port++) {
        levels[port] = (uint8_t)level;
    }
    return level > 100 ? -level : 0;
}

static int decide(int level)
{
    return ndt_control_decide(&control, no_queues, 0, constant, &level);
}

static void start(uint32_t ports)
{
    CHECK(ndt_control_init(&control, ports, 40000, 1000000000, 10000, 10000, 0) == NDT_CONTROL_OK);
}

static void too_many_ports_are_an_error(void)
{
    CHECK(ndt_control_init(&control, NDT_MAX_PORTS + 1, 40000, 1000000000, 10000, 10000, 0) ==
          NDT_CONTROL_ERROR_PORTS);
    CHECK(decide(3) == NDT_CONTROL_ERROR_PORTS);
    CHECK(ndt_control_enqueued(&control, 0, 1000000) == NDT_CAUSE_NONE);
    CHECK(!ndt_control_admits(&control, 0, 0, 40000));
    CHECK(ndt_control_init(&control, 0, 40000, 1000000000, 10000, 10000, 0) ==
          NDT_CONTROL_ERROR_PORTS);
    checks++;
}

static void a_switch_without_size_or_rate_is_an_error(void)
{
    CHECK(ndt_control_init(&control, 2, 0, 1, 1, 1, 0) == NDT_CONTROL_ERROR_SWITCH);
    CHECK(ndt_control_init(&control, 2, 1, 0, 1, 1, 0) == NDT_CONTROL_ERROR_SWITCH);
    CHECK(ndt_control_init(&control, 2, 1, 1, 0, 1, 0) == NDT_CONTROL_ERROR_SWITCH);
    CHECK(ndt_control_init(&control, 2, 1, 1, 1, 0, 0) == NDT_CONTROL_ERROR_SWITCH);
    CHECK(ndt_control_init(&control, 2, NDT_MAX_BUFFER_BYTES + 1, 1, 1, 1, 0) ==
          NDT_CONTROL_ERROR_SWITCH);
    checks++;
}

static void a_port_that_is_not_there_is_left_alone(void)
{
    start(2);
    CHECK(ndt_control_enqueued(&control, 2, 1000000) == NDT_CAUSE_NONE);
    CHECK(ndt_control_dropped(&control, UINT32_MAX, 1000000) == NDT_CAUSE_NONE);
    CHECK(ndt_control_pushed_out(&control, 4, 1000000) == NDT_CAUSE_NONE);
    ndt_control_departed(&control, 99, 1);
    CHECK(!ndt_control_admits(&control, 2, 0, 40000));
    checks++;
}

static void the_largest_number_of_ports_fits(void)
{
    start(NDT_MAX_PORTS);
    CHECK(ndt_control_enqueued(&control, NDT_MAX_PORTS - 1, 10000) == NDT_CAUSE_EXCESS);
    CHECK(decide(7) == 0);
    ndt_control_apply(&control);
    CHECK(control.levels[NDT_MAX_PORTS - 1] == 7);
    checks++;
}

static void draining_an_old_queue_earns_no_credit(void)
{
    start(2);
    ndt_control_enqueued(&control, 0, 6000);
    ndt_control_departed(&control, 0, 20000);
    CHECK(control.volumes[0].excess == 0);
    CHECK(ndt_control_enqueued(&control, 0, 9999) == NDT_CAUSE_NONE);
    CHECK(ndt_control_enqueued(&control, 0, 1) == NDT_CAUSE_EXCESS);
    checks++;
}

static void what_is_pushed_out_is_no_excess(void)
{
    start(2);
    CHECK(ndt_control_enqueued(&control, 0, 9000) == NDT_CAUSE_NONE);
    CHECK(ndt_control_pushed_out(&control, 0, 9000) == NDT_CAUSE_NONE);
    CHECK(control.volumes[0].excess == 9000 && control.volumes[0].dropped == 9000);
    CHECK(ndt_control_pushed_out(&control, 0, 1000) == NDT_CAUSE_SAFEGUARD);
    checks++;
}

static enum ndt_cause lose_at_line_rate(int packets)
{
    enum ndt_cause cause = control.fired;

    while (packets-- > 0) {
        cause = ndt_control_dropped(&control, 0, 1000);
        ndt_control_departed(&control, 0, 1000);
    }
    return cause;
}

static void the_safeguard_fires_once_until_a_normal_trigger(void)
{
    start(2);
    CHECK(lose_at_line_rate(9) == NDT_CAUSE_NONE);
    CHECK(lose_at_line_rate(1) == NDT_CAUSE_SAFEGUARD);
    decide(2);
    ndt_control_apply(&control);
    CHECK(lose_at_line_rate(50) == NDT_CAUSE_NONE);
    CHECK(ndt_control_enqueued(&control, 1, 10000) == NDT_CAUSE_EXCESS);
    decide(2);
    ndt_control_apply(&control);
    CHECK(lose_at_line_rate(10) == NDT_CAUSE_SAFEGUARD);
    checks++;
}

static void both_triggers_at_once_are_normal(void)
{
    start(2);
    CHECK(ndt_control_dropped(&control, 0, 10000) == NDT_CAUSE_EXCESS);
    decide(2);
    CHECK(control.guard_armed);
    checks++;
}

static void nothing_fires_before_the_levels_are_in_force(void)
{
    start(2);
    CHECK(ndt_control_enqueued(&control, 0, 10000) == NDT_CAUSE_EXCESS);
    CHECK(decide(3) == 0);
    CHECK(control.volumes[0].enqueued == 0);
    CHECK(ndt_control_enqueued(&control, 0, 20000) == NDT_CAUSE_NONE);
    CHECK(control.levels[0] == NDT_UNIT_LEVEL);
    ndt_control_apply(&control);
    CHECK(control.levels[0] == 3);
    CHECK(ndt_control_enqueued(&control, 0, 1) == NDT_CAUSE_EXCESS);
    checks++;
}

static void a_decision_that_fails_keeps_the_levels(void)
{
    start(2);
    decide(5);
    ndt_control_apply(&control);
    ndt_control_interval(&control);
    CHECK(decide(101) == -101);
    ndt_control_apply(&control);
    CHECK(control.levels[0] == 5 && control.levels[1] == 5 && control.fired == NDT_CAUSE_NONE);
    CHECK(decide(100) == 0);
    ndt_control_apply(&control);
    CHECK(control.levels[0] == NDT_LEVELS - 1);
    checks++;
}

static void the_threshold_is_a_shift(void)
{
    static const uint64_t below[NDT_LEVELS] = {249, 499, 999, 1999, 3999, 7999, 15999, 31999};
    int level;

    start(1);
    for (level = 0; level < NDT_LEVELS; level++) {
        decide(level);
        ndt_control_apply(&control);
        CHECK(ndt_control_admits(&control, 0, below[level], 1000));
        CHECK(!ndt_control_admits(&control, 0, below[level] + 1, 1000));
    }
    CHECK(!ndt_control_admits(&control, 0, 0, 0));
    CHECK(ndt_below_threshold(1, NDT_MAX_BUFFER_BYTES, 20));
    CHECK(!ndt_below_threshold(NDT_MAX_BUFFER_BYTES, NDT_MAX_BUFFER_BYTES, -20));
    checks++;
}

static void the_history_is_oldest_first(void)
{
    const uint8_t *codes;
    int step;

    start(3);
    for (step = 0; step < 11; step++) {
        const uint64_t queues[NDT_MAX_PORTS] = {0, 0, (uint64_t)step * 1000};
        int level = step & 7;

        ndt_control_decide(&control, queues, (uint64_t)step, constant, &level);
        ndt_control_apply(&control);
    }
    codes = ndt_control_codes(&control) + 2 * NDT_HISTORY * NDT_FEATURES;
    for (step = 3; step < 11; step++) {
        CHECK(codes[0] == ndt_queue_code((uint64_t)step * 1000, 40000));
        CHECK(codes[3] == ndt_level_code((uint8_t)((step - 1) & 7)));
        codes += NDT_FEATURES;
    }
    checks++;
}

static void the_unit_of_time_is_exact(void)
{
    CHECK(ndt_drain_ns(62500, 1000000000) == 500000);
    CHECK(ndt_drain_ns(1, 3) == 2666666667u);
    CHECK(ndt_drain_ns(1, 16000000001u) == 1);
    CHECK(ndt_drain_ns(3, 16000000000u) == 2);
    CHECK(ndt_drain_ns(999999999999u, 10000000000000u) == 800000000);
    CHECK(ndt_drain_ns(NDT_MAX_BUFFER_BYTES, 1) == ((uint64_t)1 << NDT_UNIT_BITS) - 1);
    checks++;
}

static void a_flow_is_short_until_it_has_sent_enough(void)
{
    ndt_flows_init(&flows, 3000, 100, 11);
    CHECK(ndt_flow_is_short(&flows, 7, 1000, 0));
    CHECK(ndt_flow_is_short(&flows, 7, 1999, 0));
    CHECK(!ndt_flow_is_short(&flows, 7, 1, 0));
    CHECK(ndt_flow_is_short(&flows, 8, 1, 0));
    checks++;
}

static void a_flow_starts_afresh_after_its_time_and_not_before(void)
{
    ndt_flows_init(&flows, 3000, 100, 11);
    CHECK(!ndt_flow_is_short(&flows, 7, 5000, 50));
    CHECK(!ndt_flow_is_short(&flows, 7, 1, 150));
    CHECK(ndt_flow_is_short(&flows, 7, 1, 251));
    checks++;
}

/* A key for every place of the window that begins where key 1 does. */
static void fill(uint64_t now)
{
    uint32_t key, found = 0;

    for (key = 1; found < NDT_FLOW_PROBES; key++) {
        if (ndt_flow_place(key) == ndt_flow_place(1)) {
            CHECK(ndt_flow_is_short(&flows, key, 10, now));
            found++;
        }
    }
}

static uint32_t latecomer(void)
{
    uint32_t key = UINT32_MAX;

    while (ndt_flow_place(key) != ndt_flow_place(1)) {
        key--;
    }
    return key;
}

static void a_flow_without_a_place_is_long(void)
{
    ndt_flows_init(&flows, 3000, 100, 11);
    fill(0);
    CHECK(!ndt_flow_is_short(&flows, latecomer(), 10, 100));
    CHECK(flows.overflows == 1);
    CHECK(ndt_flow_is_short(&flows, 1, 10, 100));
    CHECK(flows.overflows == 1);
    checks++;
}

static void the_place_of_an_idle_flow_is_free(void)
{
    ndt_flows_init(&flows, 3000, 100, 11);
    fill(0);
    CHECK(ndt_flow_is_short(&flows, latecomer(), 10, 101));
    CHECK(flows.overflows == 0);
    CHECK(ndt_flow_is_short(&flows, 1, 2995, 101));
    CHECK(!ndt_flow_is_short(&flows, 1, 5, 101));
    checks++;
}

int main(void)
{
    too_many_ports_are_an_error();
    a_switch_without_size_or_rate_is_an_error();
    a_port_that_is_not_there_is_left_alone();
    the_largest_number_of_ports_fits();
    draining_an_old_queue_earns_no_credit();
    what_is_pushed_out_is_no_excess();
    the_safeguard_fires_once_until_a_normal_trigger();
    both_triggers_at_once_are_normal();
    nothing_fires_before_the_levels_are_in_force();
    a_decision_that_fails_keeps_the_levels();
    the_threshold_is_a_shift();
    the_history_is_oldest_first();
    the_unit_of_time_is_exact();
    a_flow_is_short_until_it_has_sent_enough();
    a_flow_starts_afresh_after_its_time_and_not_before();
    a_flow_without_a_place_is_long();
    the_place_of_an_idle_flow_is_free();
    printf("%d checks\n", checks);
    return 0;
}
