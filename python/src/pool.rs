//! Threads that environments step on.
//!
//! Threads do not survive a fork: in a child process a pool that the parent has used would wait for ever.
//! So pools belong to a process, and a child makes its own.

use std::collections::HashMap;
use std::process;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::failure::invalid;

/// By process and number of threads.
type Pools = HashMap<(u32, usize), Arc<ThreadPool>>;

/// All pools. They stay until the process ends: those of a parent could not be joined in a child.
static POOLS: Mutex<Option<Pools>> = Mutex::new(None);

/// A pool of this process.
#[derive(Clone)]
pub struct Pool {
    process: u32,
    threads: usize,
    pool: Arc<ThreadPool>,
}

impl Pool {
    /// A pool of so many threads; zero stands for one per processor. All that ask for the same number
    /// share one pool.
    ///
    /// The interpreter's lock is held here and in every fork by Python, so that no child begins with a
    /// locked table.
    ///
    /// # Errors
    /// `ValueError` when there cannot be so many threads.
    pub fn of(_py: Python<'_>, threads: usize) -> PyResult<Pool> {
        let threads = match threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            some => some,
        };
        let process = process::id();
        let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
        let pools = pools.get_or_insert_default();
        if let Some(pool) = pools.get(&(process, threads)) {
            let pool = Arc::clone(pool);
            return Ok(Pool {
                process,
                threads,
                pool,
            });
        }
        let builder = ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|number| format!("bufgym-{number}"));
        let pool = builder
            .build()
            .map_err(|error| invalid(format!("threads = {threads}: {error}")))?;
        let pool = Arc::new(pool);
        pools.insert((process, threads), Arc::clone(&pool));
        Ok(Pool {
            process,
            threads,
            pool,
        })
    }

    /// This pool, or one like it where the process has been forked since.
    ///
    /// # Errors
    /// As [`Pool::of`].
    pub fn here(&mut self, py: Python<'_>) -> PyResult<Arc<ThreadPool>> {
        if self.process != process::id() {
            *self = Pool::of(py, self.threads)?;
        }
        Ok(Arc::clone(&self.pool))
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.threads
    }
}
