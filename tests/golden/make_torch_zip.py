"""Write torch_zip/: small torch.save files for a reader, and what it has to find in them.

expected.safetensors holds the tensors by "FILE/NAME" (nested names joined by dots); expected.json has their
types, shapes and the layout in the file, the values beside them, and the files which must be refused. Nothing in
the refused files does harm, but no reader may call what they name. legacy.pt is no zip (torch's format before it):
a reader may read it as expected or refuse it.
"""
import collections
import pickle
import re
import zipfile

import torch
from safetensors.torch import save_file

from common import arguments, dumps


def ramp(*shape, dtype=torch.float32):
    """Different small values that every type holds exactly."""
    count = torch.Size(shape).numel()
    return (torch.arange(count, dtype=torch.float32) - count // 2).reshape(shape).to(dtype)


def build():
    """File name -> object to save."""
    torch.manual_seed(20250625)
    base = torch.randn(6, 5)
    shared = torch.randn(12)
    weights = collections.OrderedDict(
        [("encoder.weight", torch.randn(4, 3).half()), ("encoder.bias", torch.randn(4).half())])
    return {
        "dtypes.pt": {
            "f32": torch.randn(3, 4), "f16": torch.randn(3, 4).half(), "bf16": torch.randn(3, 4).bfloat16(),
            "i8": ramp(3, 4, dtype=torch.int8), "i64": ramp(3, 4, dtype=torch.int64) * 2**40},
        "more_dtypes.pt": {
            "f64": torch.randn(2, 3, dtype=torch.float64), "i32": ramp(2, 3, dtype=torch.int32),
            "i16": ramp(2, 3, dtype=torch.int16), "u8": torch.arange(250, 256, dtype=torch.uint8),
            "bool": torch.tensor([True, False, True])},
        "views.pt": {
            "transposed": base.T, "sliced": base[2:4, 1:4], "stepped": base[::2, ::3],
            "permuted": torch.randn(2, 3, 4).permute(2, 0, 1), "expanded": torch.randn(3, 1).expand(3, 4)},
        "shared.pt": {"all": shared, "same": shared, "tail": shared[8:], "matrix": shared.view(3, 4)},
        "checkpoint.pt": {"dims": {"n_mels": 80, "n_vocab": 51864}, "model_state_dict": weights},
        "parameters.bin": collections.OrderedDict(
            [("weight", torch.nn.Parameter(torch.randn(2, 3))),
             ("frozen", torch.nn.Parameter(torch.randn(3), requires_grad=False))]),
        "edges.pt": {
            "scalar": torch.tensor(2.5), "empty": torch.empty(0), "empty_matrix": torch.empty(3, 0, 2),
            "one": torch.tensor([7], dtype=torch.int64)},
        "plain_values.pt": {
            "weight": torch.randn(2), "step": 1234, "rate": 0.5, "name": "größe ☃", "none": None, "flag": True,
            "big": 2**40, "negative": -7, "list": [1, 2, [3]], "tuple": (4, 5), "empty": {}},
    }


def tensors_in(value, prefix=""):
    """(dotted name, tensor) of every tensor in nested dicts."""
    for key, item in value.items():
        if isinstance(item, torch.Tensor):
            yield prefix + key, item.detach()
        elif isinstance(item, dict):
            yield from tensors_in(item, f"{prefix}{key}.")


def plain_in(value):
    """The nested dicts without their tensors."""
    return {k: plain_in(v) if isinstance(v, dict) else v for k, v in value.items() if not isinstance(v, torch.Tensor)}


def rewrite(source, target, change):
    """Copy a torch zip, each member's bytes through change(name inside the archive, bytes); None drops it."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as new:
        for name in old.namelist():
            root, inner = name.split("/", 1)
            data = change(inner, old.read(name))
            if data is not None:
                new.writestr(zipfile.ZipInfo(f"{target.stem}/{inner}"), data)


def big_endian(inner, data):
    if inner == "byteorder":
        return b"big"
    if inner.startswith("data/"):  # 4-byte values only
        return b"".join(data[i:i + 4][::-1] for i in range(0, len(data), 4))
    return data


def write_pickle(path, pickled):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as new:
        for inner, data in (("data.pkl", pickled), ("byteorder", b"little"), ("version", b"3\n")):
            new.writestr(zipfile.ZipInfo(f"{path.stem}/{inner}"), data)


class Call:
    """Pickles as a call of eval, which is never made here."""

    def __reduce__(self):
        return eval, ("1+1",)


def refused(out):
    """Write the files that a reader must not take, and say why for each."""
    os_system = (pickle.PROTO + b"\x02" + pickle.GLOBAL + b"os\nsystem\n" + pickle.BINUNICODE
                 + (4).to_bytes(4, "little") + b"true" + pickle.TUPLE1 + pickle.REDUCE + pickle.STOP)
    write_pickle(out / "evil_os_system.pt", os_system)
    nested = {"model_state_dict": {"blocks": {"weight": Call()}}}
    write_pickle(out / "evil_nested_eval.pt", pickle.dumps(nested, protocol=2, fix_imports=False))
    rewrite(out / "shared.pt", out / "short_storage.pt",
            lambda inner, data: data[:-8] if inner.startswith("data/") else data)
    rewrite(out / "shared.pt", out / "missing_storage.pt",
            lambda inner, data: None if inner.startswith("data/") else data)
    return {
        "evil_os_system.pt": "data.pkl names os.system",
        "evil_nested_eval.pt": "data.pkl names builtins.eval under a nested key",
        "short_storage.pt": "the storage has 2 values fewer than the pickle says",
        "missing_storage.pt": "the storage's member is missing",
    }


def main():
    args = arguments(__doc__, fixtures=False)
    out = args.out / "torch_zip"
    out.mkdir(exist_ok=True)
    files = build()
    for file, value in files.items():
        torch.save(value, out / file)
    files["big_endian.pt"] = {"f32": torch.randn(2, 3), "i32": ramp(5, dtype=torch.int32) * 70000}
    torch.save(files["big_endian.pt"], out / "little.tmp")
    rewrite(out / "little.tmp", out / "big_endian.pt", big_endian)
    (out / "little.tmp").unlink()
    grid = torch.randn(4, 3)
    files["legacy.pt"] = {"weight": grid, "column": grid[1:, 1]}
    torch.save(files["legacy.pt"], out / "legacy.pt", _use_new_zipfile_serialization=False)
    # the storage's key is its address: give it a name that is the same in every run
    data = re.sub(rb"X[^X]\0\0\0\d{9,}", b"X\x01\0\0\x000", (out / "legacy.pt").read_bytes())
    (out / "legacy.pt").write_bytes(data)
    why = refused(out)

    stored, about = {}, {}
    for file, value in files.items():
        back = torch.load(out / file, weights_only=True)
        assert plain_in(back) == plain_in(value), file
        loaded = dict(tensors_in(back))
        for name, tensor in tensors_in(value):
            assert torch.equal(loaded[name], tensor), (file, name)
            stored[f"{file}/{name}"] = tensor.contiguous().clone()
            about.setdefault(file, {})[name] = {
                "dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape),
                "stride": list(tensor.stride()), "offset": tensor.storage_offset()}
    for file in why:
        try:
            torch.load(out / file, weights_only=True)
        except (pickle.UnpicklingError, RuntimeError):
            continue
        raise SystemExit(f"torch took {file}")
    save_file(stored, out / "expected.safetensors")
    expected = {file: {"values": plain_in(files[file]), "tensors": about[file]} for file in files}
    (out / "expected.json").write_text(dumps({"files": expected, "not_zip": ["legacy.pt"], "refused": why}) + "\n", encoding="utf-8")
    for path in out.iterdir():
        path.chmod(0o644)
        assert path.suffix not in (".pt", ".bin") or path.stat().st_size < 10_000, path


if __name__ == "__main__":
    main()
