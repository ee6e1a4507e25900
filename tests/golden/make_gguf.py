"""Write gguf/: small GGUF files by ggml's own Python library, and what is in them."""
import argparse
import json
import pathlib
import struct

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFEndian, GGUFWriter
from gguf.quants import quantize
from safetensors.numpy import save_file

SEED = 20250625
HERE = pathlib.Path(__file__).resolve().parent
WORDS = [f"word {i}" for i in range(12)]


def write_values(writer):
    """A value of each type, and arrays of several lengths."""
    writer.add_uint8("test.u8", 200)
    writer.add_int8("test.i8", -100)
    writer.add_uint16("test.u16", 60000)
    writer.add_int16("test.i16", -30000)
    writer.add_uint32("test.u32", 4000000000)
    writer.add_int32("test.i32", -2000000000)
    writer.add_uint64("test.u64", 18000000000000000000)
    writer.add_int64("test.i64", -9000000000000000000)
    writer.add_float32("test.f32", 0.25)
    writer.add_float64("test.f64", 1e-3)
    writer.add_bool("test.yes", True)
    writer.add_bool("test.no", False)
    writer.add_string("test.text", "Grüße\nan alle")
    writer.add_array("test.few", [1, -2, 3])
    writer.add_array("test.tags", ["en", "de"])
    writer.add_array("test.flags", [True, False])
    writer.add_array("test.words", WORDS)
    writer.add_array("test.scores", [i / 4 for i in range(12)])
    writer.add_array("test.counts", list(range(12)))


# The same as our reader is to give them.
VALUES = {
    "general.architecture": "test", "general.alignment": "64",
    "test.u8": "200", "test.i8": "-100", "test.u16": "60000", "test.i16": "-30000", "test.u32": "4000000000",
    "test.i32": "-2000000000", "test.u64": "18000000000000000000", "test.i64": "-9000000000000000000",
    "test.f32": "0.25", "test.f64": "0.001", "test.yes": "true", "test.no": "false", "test.text": "Grüße\nan alle",
    "test.few": "[1, -2, 3]", "test.tags": '["en", "de"]', "test.flags": "[true, false]",
    "test.words": "[12 strings]", "test.scores": "[12 floats]", "test.counts": "[12 integers]",
}


def tensors(rng):
    """By name: the array to write, its raw type if that is not the array's, and its shape."""
    plain = {
        "f32": rng.standard_normal((3, 5)).astype(np.float32),
        "f16": rng.standard_normal((2, 3, 4)).astype(np.float16),
        "f64": rng.standard_normal(7),
        "i8": rng.integers(-128, 128, 6).astype(np.int8),
        "i16": rng.integers(-999, 999, 6).astype(np.int16),
        "i32": rng.integers(-999, 999, (2, 2, 1, 3)).astype(np.int32),
        "i64": rng.integers(-999, 999, 2).astype(np.int64),
    }
    written = {name: (array, None, array.shape) for name, array in plain.items()}
    values = rng.standard_normal((3, 64)).astype(np.float32)
    for kind in ("BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"):
        kind = GGMLQuantizationType[kind]
        written[kind.name.lower()] = (quantize(values, kind), kind, values.shape)
    # Types that the library knows by size alone; the bytes are of no meaning.
    for kind in ("Q4_K", "Q6_K", "IQ2_XXS", "MXFP4"):
        kind = GGMLQuantizationType[kind]
        block, size = GGML_QUANT_SIZES[kind]
        written[kind.name.lower()] = (np.zeros((2, size), np.uint8), kind, (2, block))
    return written


def write(path, written, endian=GGUFEndian.LITTLE):
    writer = GGUFWriter(path, "test", endianess=endian)
    writer.add_custom_alignment(64)
    write_values(writer)
    for name, (array, kind, _) in written.items():
        writer.add_tensor(name, array, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, default=HERE, help="where to write (default: beside this script)")
    out = parser.parse_args().out / "gguf"
    out.mkdir(parents=True, exist_ok=True)
    written = tensors(np.random.default_rng(SEED))
    write(out / "v3.gguf", written)
    write(out / "big_endian.gguf", {"f32": written["f32"]}, GGUFEndian.BIG)
    # Version 2 differs in its number alone.
    v3 = (out / "v3.gguf").read_bytes()
    assert v3[4:8] == struct.pack("<I", 3)
    (out / "v2.gguf").write_bytes(v3[:4] + struct.pack("<I", 2) + v3[8:])

    types = {kind.name: (int(kind), *GGML_QUANT_SIZES[kind]) for kind in GGMLQuantizationType}
    about = {
        name: {"dtype": kind.name if kind is not None else name.upper(), "shape": list(shape), "bytes": array.nbytes}
        for name, (array, kind, shape) in written.items()
    }
    values = {
        name: np.ascontiguousarray(array).view(np.uint8).ravel()
        for name, (array, kind, _) in written.items() if kind is None or kind.name == "BF16"
    }
    save_file(values, out / "expected.safetensors")
    document = {"types": types, "values": VALUES, "tensors": about}
    lines = (f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in document.items())
    (out / "expected.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    for path in out.iterdir():
        path.chmod(0o644)
        assert path.stat().st_size < 10_000, path


if __name__ == "__main__":
    main()
