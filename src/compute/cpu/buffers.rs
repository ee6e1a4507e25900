//! Memory for activations and caches that is used again: a decoding step allocates nothing, and no allocator gives
//! memory back to the system between two products, which costs more than the products where it does.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

/// Buffers kept for later, enough for the caches of a model of 32 layers; more are freed, the smallest first.
const KEPT: usize = 256;

/// Buffers that nobody uses at the moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Buffers(Arc<Mutex<Vec<Vec<f32>>>>);

/// `len` values, which go back to where they were taken from.
#[derive(Debug)]
pub(super) struct Buffer {
    values: Vec<f32>,
    len: usize,
    home: Buffers,
}

impl Buffers {
    /// A buffer of `len` values, whatever they were last used for.
    pub(super) fn take(&self, len: usize) -> Buffer {
        let mut kept = self.lock();
        let fitting = (0..kept.len())
            .filter(|&i| kept[i].len() >= len)
            .min_by_key(|&i| kept[i].len());
        let values = match fitting {
            // A far larger buffer stays for those who need its size.
            Some(i) if kept[i].len() / 8 <= len => kept.swap_remove(i),
            _ => {
                drop(kept);
                vec![0.0; len]
            }
        };
        Buffer {
            values,
            len,
            home: self.clone(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Vec<f32>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner) // whole buffers move in and out: never half done
    }
}

impl Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.values[..self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.values[..self.len]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut kept = self.home.lock();
        kept.push(std::mem::take(&mut self.values));
        if kept.len() > KEPT
            && let Some(smallest) = (0..kept.len()).min_by_key(|&i| kept[i].len())
        {
            kept.swap_remove(smallest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_given_back_is_used_again() {
        let buffers = Buffers::default();
        let first = buffers.take(1000).as_ptr();
        assert_eq!(buffers.take(900).as_ptr(), first);
        assert_ne!(
            buffers.take(10).as_ptr(),
            first,
            "ten values do not hold a thousand back"
        );
    }
}
