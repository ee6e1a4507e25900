//! Rows of floats that move to a temporary file once they are many.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Mutex, PoisonError};

/// Floats that are kept in memory: 8 MiB, the frames of some four minutes.
const MEMORY_FLOATS: usize = 2 << 20;

/// An append-only table of f32 rows in bounded memory, readable at any place. Where no temporary file can be had (or
/// it cannot be written) all of it stays in memory.
#[derive(Debug)]
pub(super) struct Spill {
    width: usize,
    memory_floats: usize,
    /// The first rows.
    file: Option<Mutex<File>>,
    file_floats: usize,
    /// The rows behind them.
    tail: Vec<f32>,
    file_failed: bool,
}

impl Spill {
    /// A table of rows of `width` floats.
    pub(super) fn new(width: usize) -> Self {
        Self::with_memory(width, MEMORY_FLOATS)
    }

    fn with_memory(width: usize, memory_floats: usize) -> Self {
        Self {
            width,
            memory_floats,
            file: None,
            file_floats: 0,
            tail: Vec::new(),
            file_failed: false,
        }
    }

    /// Floats in a row.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    pub(super) fn len(&self) -> usize {
        (self.file_floats + self.tail.len()) / self.width.max(1)
    }

    /// Bytes of memory in use.
    #[cfg(test)]
    pub(super) fn memory_bytes(&self) -> usize {
        self.tail.capacity() * size_of::<f32>()
    }

    /// Appends a row.
    ///
    /// # Errors
    /// The file could not be written to and cannot be read back either.
    pub(super) fn push(&mut self, row: &[f32]) -> io::Result<()> {
        debug_assert_eq!(row.len(), self.width, "floats in a row");
        self.tail.extend_from_slice(row);
        if self.tail.len() >= self.memory_floats
            && !self.file_failed
            && self.move_to_file().is_err()
        {
            self.stay_in_memory()?;
        }
        Ok(())
    }

    /// Fills `out`, a whole number of rows, with those from `row` on, which must be there.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn read(&self, row: usize, out: &mut [f32]) -> io::Result<()> {
        let start = row.saturating_mul(self.width);
        let filed = self.file_floats.saturating_sub(start).min(out.len());
        let (from_file, from_tail) = out.split_at_mut(filed);
        if let Some(file) = &self.file
            && !from_file.is_empty()
        {
            // The position is set before each read, so a reader that panicked does no harm.
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            file.seek(SeekFrom::Start((start * size_of::<f32>()) as u64))?;
            file.read_exact(bytemuck::cast_slice_mut(from_file))?;
        }
        if !from_tail.is_empty() {
            let at = (start + filed) - self.file_floats;
            from_tail.copy_from_slice(&self.tail[at..at + from_tail.len()]);
        }
        Ok(())
    }

    fn move_to_file(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(Mutex::new(tempfile::tempfile()?)),
        };
        let file = file.get_mut().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(
            (self.file_floats * size_of::<f32>()) as u64,
        ))?;
        file.write_all(bytemuck::cast_slice(&self.tail))?;
        self.file_floats += self.tail.len();
        self.tail.clear();
        Ok(())
    }

    fn stay_in_memory(&mut self) -> io::Result<()> {
        let mut all = vec![0.0; self.file_floats];
        self.read(0, &mut all)?;
        all.append(&mut self.tail);
        (self.file, self.file_floats, self.file_failed) = (None, 0, true);
        self.tail = all;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(memory_floats: usize, rows: usize) -> Spill {
        let mut spill = Spill::with_memory(3, memory_floats);
        for i in 0..rows {
            spill.push(&[i as f32, 0.5, -(i as f32)]).unwrap();
        }
        spill
    }

    fn assert_reads_back(spill: &Spill, rows: usize) {
        assert_eq!(spill.len(), rows);
        for (start, n) in [
            (0, rows),
            (0, 0),
            (rows, 0),
            (5, 1),
            (rows - 2, 2),
            (9, 4),
            (10, 3),
            (19, 12),
        ] {
            let mut out = vec![f32::NAN; n * 3];
            spill.read(start, &mut out).unwrap();
            for (i, row) in out.chunks(3).enumerate() {
                let x = (start + i) as f32;
                assert_eq!(row, [x, 0.5, -x], "row {i} from {start}");
            }
        }
    }

    #[test]
    fn rows_read_back_wherever_they_lie() {
        let spill = filled(30, 35);
        assert_eq!((spill.file_floats, spill.tail.len()), (90, 15));
        assert_reads_back(&spill, 35);
        let spill = filled(1000, 35);
        assert!(spill.file.is_none());
        assert_reads_back(&spill, 35);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_given_up() {
        let mut spill = filled(30, 25);
        let mut copy = tempfile::NamedTempFile::new().unwrap();
        let mut rows = vec![0.0; spill.file_floats];
        spill.read(0, &mut rows).unwrap();
        copy.write_all(bytemuck::cast_slice(&rows)).unwrap();
        spill.file = Some(Mutex::new(File::open(copy.path()).unwrap()));
        for i in 25..60 {
            spill.push(&[i as f32, 0.5, -(i as f32)]).unwrap();
        }
        assert!(spill.file.is_none() && spill.file_failed);
        assert_reads_back(&spill, 60);
    }
}
