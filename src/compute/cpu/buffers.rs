//! Memory for activations and caches that is used again: a decoding step allocates nothing, and no allocator gives
//! memory back to the system between two products, which costs more than the products where it does.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use memmap2::MmapMut;

/// Buffers kept for later, enough for the caches of a model of 32 layers; more are freed, the smallest first.
const KEPT: usize = 256;

/// Buffers that nobody uses at the moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Buffers(Arc<Mutex<Vec<Memory>>>);

/// From this size on, memory comes in pages of 2 MiB where the system has them: the first use of small pages costs more
/// than what is computed in them.
const LARGE_BYTES: usize = 2 << 20;

/// Values that were zero in the beginning.
#[derive(Debug)]
enum Memory {
    Small(Vec<f32>),
    Large(MmapMut),
}

impl Default for Memory {
    fn default() -> Self {
        Self::Small(Vec::new())
    }
}

impl Memory {
    fn new(len: usize) -> Self {
        if len * 4 >= LARGE_BYTES
            && let Ok(map) = MmapMut::map_anon(len * 4)
        {
            #[cfg(target_os = "linux")]
            let _ = map.advise(memmap2::Advice::HugePage); // without it, it is as slow as it was
            return Self::Large(map);
        }
        Self::Small(vec![0.0; len])
    }

    fn values(&self) -> &[f32] {
        match self {
            Self::Small(values) => values,
            Self::Large(map) => bytemuck::cast_slice(map),
        }
    }

    fn values_mut(&mut self) -> &mut [f32] {
        match self {
            Self::Small(values) => values,
            Self::Large(map) => bytemuck::cast_slice_mut(map),
        }
    }

    fn len(&self) -> usize {
        self.values().len()
    }
}

/// `len` values, which go back to where they were taken from.
#[derive(Debug)]
pub(super) struct Buffer {
    memory: Memory,
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
        let memory = match fitting {
            // A far larger buffer stays for those who need its size.
            Some(i) if kept[i].len() / 8 <= len => kept.swap_remove(i),
            _ => {
                drop(kept);
                Memory::new(len)
            }
        };
        Buffer {
            memory,
            len,
            home: self.clone(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Memory>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner) // whole buffers move in and out: never half done
    }
}

impl Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.memory.values()[..self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.memory.values_mut()[..self.len]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut kept = self.home.lock();
        kept.push(std::mem::take(&mut self.memory));
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
