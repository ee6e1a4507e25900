//! Writing safetensors files that are the same bytes every time.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde_json::{Map, Value, json};

use super::{LENGTH_BYTES, METADATA_KEY};
use crate::checkpoint::{Error, Tensor};

/// Data begins at a multiple of this many bytes, so that a mapped tensor can be read by vector loads.
const DATA_ALIGN_BYTES: usize = 64;

/// Writes `tensors` and `metadata` to `path`, to a temporary name first and then renamed.
///
/// Equal arguments give equal files: tensors are laid out from the widest element type to the narrowest, then by name,
/// metadata by key. The data begins at a multiple of 64 bytes and each tensor at a multiple of its element's size.
/// (The `safetensors` crate writes metadata in the order of a randomly seeded hash map, so no two of its files need be
/// alike.)
///
/// # Errors
/// The file cannot be written, or a tensor's data is not as long as its shape and type say, or the format has no such
/// type.
pub fn write_safetensors(
    path: &Path,
    tensors: &BTreeMap<String, Tensor>,
    metadata: &BTreeMap<String, String>,
) -> Result<(), Error> {
    write(path, tensors, metadata).map_err(|source| Error::Write {
        path: path.to_path_buf(),
        source,
    })
}

fn write(
    path: &Path,
    tensors: &BTreeMap<String, Tensor>,
    metadata: &BTreeMap<String, String>,
) -> io::Result<()> {
    let mut ordered: Vec<(&String, &Tensor)> = tensors.iter().collect();
    ordered.sort_by_key(|(_, tensor)| std::cmp::Reverse(tensor.dtype.size()));
    let header = header(&ordered, metadata)?;

    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut temporary = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // A model is read by whoever may read the directory; the umask still applies.
        temporary.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let temporary = temporary.tempfile_in(directory)?;
    write_to(temporary.as_file(), &header, &ordered)?;
    temporary.as_file().sync_all()?;
    temporary.persist(path)?;
    Ok(())
}

fn write_to(file: &File, header: &[u8], ordered: &[(&String, &Tensor)]) -> io::Result<()> {
    let mut file = BufWriter::new(file);
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(header)?;
    for (_, tensor) in ordered {
        file.write_all(&tensor.data)?;
    }
    file.flush()
}

/// The header of tensors laid out in the order given, padded with spaces to the data's alignment.
fn header(
    ordered: &[(&String, &Tensor)],
    metadata: &BTreeMap<String, String>,
) -> io::Result<Vec<u8>> {
    let mut entries = Map::new();
    if !metadata.is_empty() {
        entries.insert(METADATA_KEY.into(), json!(metadata));
    }
    let mut start = 0;
    for (name, tensor) in ordered {
        let fits = tensor.dtype.byte_len(&tensor.shape) == Some(tensor.data.len());
        if !fits || tensor.dtype.is_quantised() || name.as_str() == METADATA_KEY {
            let message = format!("tensor `{name}` is not {} {:?}", tensor.dtype, tensor.shape);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let end = start + tensor.data.len();
        let entry = json!({
            "dtype": tensor.dtype.name(),
            "shape": tensor.shape,
            "data_offsets": [start, end],
        });
        entries.insert((*name).clone(), entry);
        start = end;
    }
    let mut header = serde_json::to_vec(&Value::Object(entries))?;
    let data_start = (LENGTH_BYTES + header.len()).next_multiple_of(DATA_ALIGN_BYTES);
    header.resize(data_start - LENGTH_BYTES, b' ');
    Ok(header)
}
