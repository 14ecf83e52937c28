/*
 * The slow path: a thread that runs the network in integers, asleep between decisions. The fast path
 * hands it the codes and continues; when the levels are there, it puts them in force.
 *
 * One decision is under way at a time: a control whose levels are not in force yet fires no trigger. What
 * both threads use is handed over by `state` alone (release and acquire).
 */
#ifndef NDT_DECIDER_H
#define NDT_DECIDER_H

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_pause.h>

#include "ndt_int8.h"

#include "ndt_control.h"

/* The header of a network that sets alpha only has no NDT_OUTPUTS. */
#ifndef NDT_OUTPUTS
#define NDT_OUTPUTS 1
#endif

enum decider_state { DECIDER_IDLE, DECIDER_ASKED, DECIDER_DONE, DECIDER_STOP };

struct decider {
    pthread_t thread;
    sem_t wake;
    atomic_int state;
    uint32_t ports;
    int result;
    uint64_t asked, done; /* cycles: of the question, and of the answer */
    uint64_t network;     /* cycles that the network took */
    uint8_t codes[NDT_MAX_PORTS * NDT_HISTORY * NDT_FEATURES];
    uint8_t levels[NDT_MAX_PORTS];
    uint8_t early[NDT_MAX_PORTS];
    struct ndt_int8_workspace workspace;
};

static int run_network(struct decider *decider)
{
#if NDT_OUTPUTS == 2
    return ndt_int8_decide(&decider->workspace, decider->codes, decider->ports, decider->levels,
                           decider->early);
#else
    return ndt_int8_decide(&decider->workspace, decider->codes, decider->ports, decider->levels);
#endif
}

static void *decider_main(void *argument)
{
    struct decider *decider = argument;

    for (;;) {
        uint64_t begin;
        int state;

        while (sem_wait(&decider->wake) != 0) {
            /* interrupted by a signal */
        }
        state = atomic_load_explicit(&decider->state, memory_order_acquire);
        if (state == DECIDER_STOP) {
            return NULL;
        }
        begin = rte_rdtsc();
        decider->result = run_network(decider);
        decider->done = rte_rdtsc();
        decider->network = decider->done - begin;
        atomic_store_explicit(&decider->state, DECIDER_DONE, memory_order_release);
    }
}

/* Starts the thread, on another core than the caller's where `allowed` has one. 0, or an error number. */
static int decider_start(struct decider *decider, cpu_set_t allowed)
{
    pthread_attr_t attributes;
    int result;

    atomic_init(&decider->state, DECIDER_IDLE);
    if (CPU_COUNT(&allowed) > 1) {
        CPU_CLR(sched_getcpu(), &allowed);
    }
    if (sem_init(&decider->wake, 0, 0) != 0 || pthread_attr_init(&attributes) != 0) {
        return -1;
    }
    result = pthread_attr_setaffinity_np(&attributes, sizeof allowed, &allowed);
    if (result == 0) {
        result = pthread_create(&decider->thread, &attributes, decider_main, decider);
    }
    pthread_attr_destroy(&attributes);
    return result;
}

/* Asks for a decision from these codes. None is under way. */
static void decider_ask(struct decider *decider, const uint8_t *codes, uint32_t ports)
{
    memcpy(decider->codes, codes, (size_t)ports * NDT_HISTORY * NDT_FEATURES);
    decider->ports = ports;
    decider->asked = rte_rdtsc();
    atomic_store_explicit(&decider->state, DECIDER_ASKED, memory_order_release);
    sem_post(&decider->wake);
}

static int decider_state(struct decider *decider)
{
    return atomic_load_explicit(&decider->state, memory_order_acquire);
}

/* The answer has been used. */
static void decider_release(struct decider *decider)
{
    atomic_store_explicit(&decider->state, DECIDER_IDLE, memory_order_release);
}

/* Waits for the decision that is under way, if one is; it stays to be used. */
static void decider_wait(struct decider *decider)
{
    while (decider_state(decider) == DECIDER_ASKED) {
        rte_pause();
    }
}

/* Ends the thread. No decision is under way. */
static void decider_stop(struct decider *decider)
{
    atomic_store_explicit(&decider->state, DECIDER_STOP, memory_order_release);
    sem_post(&decider->wake);
    pthread_join(decider->thread, NULL);
    sem_destroy(&decider->wake);
}

#endif
