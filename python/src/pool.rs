//! Threads on which environments step.
//!
//! Threads do not survive a fork: in a child process, a pool that the parent has used would wait for ever. So
//! pools belong to a process, and a child makes new ones.

use std::collections::HashMap;
use std::process;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::failure::invalid;

/// Pools by process and number of threads.
type Pools = HashMap<(u32, usize), Arc<ThreadPool>>;

/// All pools. They stay until the process ends, because a child cannot join the threads of its parent.
static POOLS: Mutex<Option<Pools>> = Mutex::new(None);

/// A pool of this process.
#[derive(Clone)]
pub struct Pool {
    process: u32,
    threads: usize,
    pool: Arc<ThreadPool>,
}

impl Pool {
    /// Returns a pool of this many threads; zero means one per processor. All callers with the same number
    /// share one pool.
    ///
    /// Python holds the interpreter's lock here and in every fork, so that no child begins with a locked
    /// table.
    ///
    /// # Errors
    /// Returns a `ValueError` if so many threads cannot be created.
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

    /// Returns this pool, or a new one of the same size if the process has been forked since.
    ///
    /// # Errors
    /// Returns the errors of [`Pool::of`].
    pub fn here(&mut self, py: Python<'_>) -> PyResult<Arc<ThreadPool>> {
        if self.process != process::id() {
            *self = Pool::of(py, self.threads)?;
        }
        Ok(Arc::clone(&self.pool))
    }

    /// Returns the number of threads.
    pub fn threads(&self) -> usize {
        self.threads
    }
}
