//! Threads that share one operation after another, a few microseconds apart.
//!
//! The thread that calls [`Threads::run`] takes part. Workers look for work for a moment after each operation, so that the
//! next one finds them awake, and then sleep. A caller waits only for workers that have begun a task: one that the system
//! keeps from running has none, and delays nobody.

#![allow(unsafe_code)]

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use crate::compute::Error;

/// How long a thread looks for work before it sleeps: longer than what lies between two operations of a decoding step.
const AWAKE: Duration = Duration::from_micros(150);
/// Looks in a row before the clock is asked and other threads are let in.
const LOOKS: usize = 64;

/// Worker threads, one fewer than take part in an operation.
pub(super) struct Threads {
    shared: Arc<Shared>,
    workers: Vec<Worker>,
    /// Held by whoever shares an operation; another thread does its own alone.
    caller: Mutex<()>,
}

struct Worker {
    thread: Thread,
    handle: Option<JoinHandle<()>>,
}

struct Shared {
    gate: Gate,
    job: UnsafeCell<Option<Job>>,
    /// The next task that nobody has begun.
    next: AtomicUsize,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    caller: Mutex<Option<Thread>>,
    asleep: Vec<AtomicBool>,
    ended: AtomicBool,
}

/// An operation, lent for as long as its gate is open or someone is inside.
#[derive(Clone, Copy)]
struct Job {
    work: *const (dyn Fn(usize) + Sync),
    tasks: usize,
}

// SAFETY: `job` is written only by the caller while the gate is closed and nobody is inside, and read only by those who
// entered through the open gate; the gate's orderings make the one visible to the others. What it points to is `Sync`.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

/// Whether workers may enter, how many are inside, and the number of the operation, in one word.
struct Gate(AtomicU64);

const OPEN: u64 = 1 << 16;
const INSIDE: u64 = OPEN - 1;
const OPERATION: u64 = OPEN << 1;

impl Gate {
    fn open(&self) {
        // Nobody is inside, and the operation's number grows.
        let before = self.0.load(Ordering::Relaxed) & !(OPEN | INSIDE);
        self.0
            .store(before.wrapping_add(OPERATION) | OPEN, Ordering::SeqCst);
    }

    fn close(&self) {
        self.0.fetch_and(!OPEN, Ordering::AcqRel);
    }

    fn is_empty(&self) -> bool {
        self.0.load(Ordering::Acquire) & INSIDE == 0
    }

    /// The number of the operation that is open, unless it is `done`.
    fn operation(&self, done: u64) -> Option<u64> {
        let word = self.0.load(Ordering::Acquire);
        (word & OPEN != 0 && word & !INSIDE != done).then_some(word & !INSIDE)
    }

    /// Goes in if `operation` is still open.
    fn enter(&self, operation: u64) -> bool {
        let mut word = self.0.load(Ordering::Relaxed);
        while word & !INSIDE == operation {
            match self
                .0
                .compare_exchange_weak(word, word + 1, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Goes out; true for the last one after closing.
    fn leave(&self) -> bool {
        let word = self.0.fetch_sub(1, Ordering::AcqRel);
        word & OPEN == 0 && word & INSIDE == 1
    }
}

thread_local! {
    /// Whether this thread is inside an operation: what it starts there, it does alone.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

impl Threads {
    /// `count` threads, the caller's among them.
    pub(super) fn new(count: usize) -> Result<Self, Error> {
        let others = count.saturating_sub(1);
        let shared = Arc::new(Shared {
            gate: Gate(AtomicU64::new(0)),
            job: UnsafeCell::new(None),
            next: AtomicUsize::new(0),
            panic: Mutex::default(),
            caller: Mutex::default(),
            asleep: (0..others).map(|_| AtomicBool::new(false)).collect(),
            ended: AtomicBool::new(false),
        });
        let mut started = Self {
            shared,
            workers: Vec::with_capacity(others),
            caller: Mutex::default(),
        };
        for i in 0..others {
            let shared = Arc::clone(&started.shared);
            let handle = thread::Builder::new()
                .name(format!("compute-{}", i + 1))
                .spawn(move || shared.work(i))
                .map_err(|source| Error::Threads {
                    threads: count,
                    source,
                })?;
            started.workers.push(Worker {
                thread: handle.thread().clone(),
                handle: Some(handle),
            });
        }
        Ok(started)
    }

    /// Threads that take part in an operation.
    pub(super) fn count(&self) -> usize {
        self.workers.len() + 1
    }

    /// Calls `work` once for each number below `tasks`, on any of the threads, and returns when all calls have.
    ///
    /// A panic of `work` is raised again here.
    pub(super) fn run(&self, tasks: usize, work: &(dyn Fn(usize) + Sync)) {
        let caller = if tasks > 1 && !self.workers.is_empty() && !BUSY.get() {
            self.caller.try_lock().ok()
        } else {
            None
        };
        let Some(_caller) = caller else {
            (0..tasks).for_each(work);
            return;
        };
        let shared = &*self.shared;
        // SAFETY: only the lifetime changes. The gate is closed and empty again before this function returns, so that
        // nobody calls `work` after that.
        let lent = unsafe {
            std::mem::transmute::<
                *const (dyn Fn(usize) + Sync + '_),
                *const (dyn Fn(usize) + Sync + 'static),
            >(std::ptr::from_ref(work))
        };
        // SAFETY: the gate is closed and nobody is inside, so nobody reads the job.
        unsafe { *shared.job.get() = Some(Job { work: lent, tasks }) };
        shared.next.store(0, Ordering::Relaxed);
        shared.gate.open();
        for (worker, asleep) in self.workers.iter().zip(&shared.asleep).take(tasks - 1) {
            if asleep.swap(false, Ordering::SeqCst) {
                worker.thread.unpark();
            }
        }
        BUSY.set(true);
        let outcome = catch_unwind(AssertUnwindSafe(|| shared.take_tasks(tasks, work)));
        BUSY.set(false);
        shared.gate.close();
        shared.wait_until_empty();
        let theirs = lock(&shared.panic).take();
        if let Some(panic) = outcome.err().or(theirs) {
            resume_unwind(panic);
        }
    }

    /// Calls `work` with each `size` values of `out`, the last ones fewer, and their number.
    pub(super) fn chunks<T: Send>(
        &self,
        out: &mut [T],
        size: usize,
        work: impl Fn(usize, &mut [T]) + Sync,
    ) {
        let len = out.len();
        let values = Pieces(out.as_mut_ptr());
        self.run(len.div_ceil(size), &|i| {
            let from = i * size;
            // SAFETY: the pieces lie within `out`, apart from one another, and each is lent once.
            let piece = unsafe { values.piece(from, size.min(len - from)) };
            work(i, piece);
        });
    }
}

/// The start of values that tasks write different parts of.
pub(super) struct Pieces<T>(pub(super) *mut T);

// SAFETY: who asks for a piece promises that nobody else has any of it.
unsafe impl<T: Send> Sync for Pieces<T> {}

impl<T> Pieces<T> {
    /// The `len` values from `from` on.
    ///
    /// # Safety
    /// They exist for as long as the result, and nobody else reads or writes them meanwhile.
    #[allow(
        clippy::mut_from_ref,
        reason = "pieces are apart, as the caller promises"
    )]
    #[inline(always)]
    pub(super) unsafe fn piece<'a>(&self, from: usize, len: usize) -> &'a mut [T] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(from), len) }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        for worker in &mut self.workers {
            worker.thread.unpark();
            if let Some(handle) = worker.handle.take() {
                // A worker's panics are those of tasks, which were raised where the tasks were started.
                let _ = handle.join();
            }
        }
    }
}

impl Shared {
    fn take_tasks(&self, tasks: usize, work: &(dyn Fn(usize) + Sync)) {
        loop {
            let task = self.next.fetch_add(1, Ordering::Relaxed);
            if task >= tasks {
                return;
            }
            work(task);
        }
    }

    /// Waits for the workers inside, awake for a moment, then asleep.
    fn wait_until_empty(&self) {
        if look(|| self.gate.is_empty().then_some(())).is_some() {
            return;
        }
        *lock(&self.caller) = Some(thread::current());
        while !self.gate.is_empty() {
            thread::park_timeout(Duration::from_millis(1)); // the last one may have left before it knew whom to wake
        }
        *lock(&self.caller) = None;
    }

    /// A worker's life.
    fn work(&self, me: usize) {
        BUSY.set(true);
        let mut done = 0;
        while !self.ended.load(Ordering::Relaxed) {
            let Some(operation) = look(|| self.gate.operation(done)) else {
                self.asleep[me].store(true, Ordering::SeqCst);
                fence(Ordering::SeqCst);
                // The gate may have been opened by one who did not see this thread asleep yet.
                if self.gate.operation(done).is_none() && !self.ended.load(Ordering::SeqCst) {
                    thread::park();
                }
                self.asleep[me].store(false, Ordering::SeqCst);
                continue;
            };
            done = operation;
            if self.gate.enter(operation) {
                // SAFETY: this thread went in through the open gate, and the caller changes the job, or ends what it
                // points to, only after all have left.
                let job = unsafe { *self.job.get() };
                if let Some(Job { work, tasks }) = job {
                    // SAFETY: as above.
                    let work = unsafe { &*work };
                    let outcome = catch_unwind(AssertUnwindSafe(|| self.take_tasks(tasks, work)));
                    if let Err(panic) = outcome {
                        *lock(&self.panic) = Some(panic);
                    }
                }
                if self.gate.leave()
                    && let Some(caller) = &*lock(&self.caller)
                {
                    caller.unpark();
                }
            }
        }
    }
}

/// Asks `found` again and again for a moment.
fn look<R>(found: impl Fn() -> Option<R>) -> Option<R> {
    let mut since = None;
    loop {
        for _ in 0..LOOKS {
            if let Some(found) = found() {
                return Some(found);
            }
            std::hint::spin_loop();
        }
        if since.get_or_insert_with(Instant::now).elapsed() > AWAKE {
            return None;
        }
        thread::yield_now();
    }
}

/// Each value under these locks is whole at any time.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_runs_once() {
        for count in [1, 2, 5] {
            let threads = Threads::new(count).unwrap();
            for tasks in [0, 1, 2, 3, 100, 1000] {
                let mut runs = vec![0u8; tasks];
                threads.chunks(&mut runs, 1, |_, runs| runs[0] += 1);
                assert_eq!(runs, vec![1; tasks], "{tasks} tasks on {count} threads");
            }
        }
    }

    #[test]
    fn chunks_cover_all_values_in_order() {
        let threads = Threads::new(3).unwrap();
        let mut values = vec![0; 1003];
        threads.chunks(&mut values, 10, |i, chunk| chunk.fill(i));
        assert!(values.iter().enumerate().all(|(at, &i)| at / 10 == i));
    }

    #[test]
    fn an_operation_inside_an_operation_is_done_by_its_thread() {
        let threads = Threads::new(2).unwrap();
        let count = AtomicUsize::new(0);
        threads.run(7, &|_| {
            threads.run(11, &|_| {
                count.fetch_add(1, Ordering::Relaxed);
            });
        });
        assert_eq!(count.into_inner(), 77);
    }

    #[test]
    fn two_callers_at_once_both_get_their_work_done() {
        let threads = Threads::new(2).unwrap();
        let counts = [AtomicUsize::new(0), AtomicUsize::new(0)];
        thread::scope(|scope| {
            for count in &counts {
                scope.spawn(|| {
                    for _ in 0..500 {
                        threads.run(3, &|_| {
                            count.fetch_add(1, Ordering::Relaxed);
                        });
                    }
                });
            }
        });
        assert_eq!(counts.map(AtomicUsize::into_inner), [1500, 1500]);
    }

    #[test]
    fn a_panic_reaches_the_caller_and_they_go_on() {
        let threads = Threads::new(2).unwrap();
        for failing in [0, 9] {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                threads.run(10, &|task| assert_ne!(task, failing, "the task that fails"));
            }));
            assert!(outcome.is_err());
        }
        let count = AtomicUsize::new(0);
        threads.run(10, &|_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(count.into_inner(), 10);
    }

    #[test]
    fn sleeping_workers_are_woken() {
        let threads = Threads::new(3).unwrap();
        for _ in 0..20 {
            thread::sleep(Duration::from_millis(1));
            let mut who = vec![None; 3];
            threads.chunks(&mut who, 1, |_, who| {
                thread::sleep(Duration::from_millis(1));
                who[0] = Some(thread::current().id());
            });
            assert!(who.iter().all(Option::is_some));
        }
    }
}
