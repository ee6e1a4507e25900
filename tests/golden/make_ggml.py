"""Write ggml/: a model of random_whisper/ in the file form of whisper.cpp.

With --model DIR --to FILE, any Whisper directory of Hugging Face's form instead, for trying a published model.
The form follows models/convert-pt-to-ggml.py of ggml-org/whisper.cpp at 233fe1f.
"""
import argparse
import base64
import json
import pathlib
import struct

import numpy as np
from safetensors.numpy import load_file

from common import HERE, openai_name

ASSETS = HERE.parents[1] / "assets" / "whisper"
MAGIC = 0x67676D6C
F32, F16 = 0, 1
# Stored in single precision whatever the rest is, with the biases and the norms.
SINGLE = {"encoder.positional_embedding", "decoder.positional_embedding"}
CONV_BIASES = {"encoder.conv1.bias", "encoder.conv2.bias"}


def integers(*values):
    return struct.pack(f"<{len(values)}i", *values)


def tokens(n_vocab):
    """The text tokens of OpenAI's vocabulary for a model of so many, by rank."""
    name = "multilingual.tiktoken" if n_vocab >= 51865 else "gpt2.tiktoken"
    lines = (ASSETS / name).read_text().splitlines()
    return [base64.b64decode(line.split()[0]) if line[0] != "=" else b"" for line in lines if line][:n_vocab]


def header(config):
    sizes = ("vocab_size", "max_source_positions", "d_model", "encoder_attention_heads", "encoder_layers",
             "max_target_positions", "d_model", "decoder_attention_heads", "decoder_layers", "num_mel_bins")
    bins = config["num_mel_bins"]
    filters = load_file(HERE / f"mel_{bins}.safetensors")[f"mel_filters_{bins}"]
    words = tokens(config["vocab_size"])
    yield integers(MAGIC, *(config[size] for size in sizes), F16)
    yield integers(*filters.shape) + filters.astype("<f4").tobytes()
    yield integers(len(words)) + b"".join(integers(len(word)) + word for word in words)


def tensor(name, values):
    values = values.squeeze()
    if name in CONV_BIASES:
        values = values[:, None]
    half = values.ndim > 1 and name not in SINGLE | CONV_BIASES
    yield integers(values.ndim, len(name), F16 if half else F32) + integers(*reversed(values.shape))
    yield name.encode() + values.astype("<f2" if half else "<f4").tobytes()


def write(directory, path):
    """The model in `directory` as the file `path`."""
    config = json.loads((directory / "config.json").read_text())
    with path.open("wb") as file:
        file.writelines(header(config))
        for name, values in load_file(directory / "model.safetensors").items():
            if name != "proj_out.weight":
                file.writelines(tensor(openai_name(name), np.asarray(values)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, default=HERE, help="where to write (default: beside this script)")
    parser.add_argument("--model", type=pathlib.Path, help="a model's directory")
    parser.add_argument("--to", type=pathlib.Path, help="the file to write it to")
    args = parser.parse_args()
    if args.model:
        return write(args.model, args.to)
    out = args.out / "ggml"
    out.mkdir(parents=True, exist_ok=True)
    write(HERE / "random_whisper" / "narrow", out / "narrow.bin")
    (out / "narrow.bin").chmod(0o644)
    assert (out / "narrow.bin").stat().st_size < 500_000


if __name__ == "__main__":
    main()
