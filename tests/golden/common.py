"""What the golden scripts share: arguments, reading the fixtures, writing the results."""
import argparse
import json
import os
import pathlib

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import torch
import whisper
from safetensors.numpy import save_file
from safetensors.torch import load_file

HERE = pathlib.Path(__file__).resolve().parent
SAMPLE = HERE.parents[1] / "assets" / "samples" / "jfk.wav"

torch.set_num_threads(2)
torch.set_grad_enabled(False)


def arguments(description, fixtures=True):
    parser = argparse.ArgumentParser(description=description)
    if fixtures:
        parser.add_argument(
            "--fixtures", type=pathlib.Path, default=os.environ.get("PRETRAINED_FIXTURES"),
            help="directory of the fixtures (default: $PRETRAINED_FIXTURES)")
    parser.add_argument("--out", type=pathlib.Path, default=HERE, help="where to write (default: beside this script)")
    args = parser.parse_args()
    if fixtures and args.fixtures is None:
        parser.error("give --fixtures or set PRETRAINED_FIXTURES")
    if fixtures:
        args.fixtures = pathlib.Path(args.fixtures)
    args.out.mkdir(parents=True, exist_ok=True)
    return args


HF_NAMES = [
    ("model.encoder.layer_norm.", "encoder.ln_post."),
    ("model.decoder.layer_norm.", "decoder.ln."),
    ("model.encoder.layers.", "encoder.blocks."),
    ("model.decoder.layers.", "decoder.blocks."),
    ("model.", ""),
    ("embed_positions.weight", "positional_embedding"),
    ("embed_tokens.", "token_embedding."),
    (".self_attn_layer_norm.", ".attn_ln."),
    (".encoder_attn_layer_norm.", ".cross_attn_ln."),
    (".final_layer_norm.", ".mlp_ln."),
    (".self_attn.", ".attn."),
    (".encoder_attn.", ".cross_attn."),
    (".q_proj.", ".query."),
    (".k_proj.", ".key."),
    (".v_proj.", ".value."),
    (".out_proj.", ".out."),
    (".fc1.", ".mlp.0."),
    (".fc2.", ".mlp.2."),
]


def openai_name(name):
    """The name in OpenAI's layout of a tensor in Hugging Face's layout."""
    for old, new in HF_NAMES:
        name = name.replace(old, new)
    return name


def whisper_from_hf(directory):
    """A whisper.model.Whisper with the weights of a Hugging Face directory."""
    config = json.loads((directory / "config.json").read_text())
    dims = whisper.model.ModelDimensions(
        n_mels=config["num_mel_bins"], n_vocab=config["vocab_size"],
        n_audio_ctx=config["max_source_positions"], n_audio_state=config["d_model"],
        n_audio_head=config["encoder_attention_heads"], n_audio_layer=config["encoder_layers"],
        n_text_ctx=config["max_target_positions"], n_text_state=config["d_model"],
        n_text_head=config["decoder_attention_heads"], n_text_layer=config["decoder_layers"])
    model = whisper.model.Whisper(dims)
    tensors = load_file(directory / "model.safetensors")
    tensors.pop("proj_out.weight", None)
    model.load_state_dict({openai_name(k): v for k, v in tensors.items()})
    return model.eval()


def load_whisper(fixtures, name):
    if name == "tiny.en":
        return whisper.load_model(str(fixtures / "whisper-tiny.en.pt"), device="cpu").eval()
    return whisper_from_hf(fixtures / f"whisper-{name}")


def rounded(value):
    """The same value with every float cut to 7 significant digits."""
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(v) for v in value]
    return value


def dumps(value, depth=0):
    """JSON that breaks lines only around dicts and lists which hold dicts or long lists."""
    def small(v):
        return not isinstance(v, dict) and (not isinstance(v, list) or (len(v) < 9 and all(map(small, v))))

    items = value.values() if isinstance(value, dict) else value
    flat = not isinstance(value, (dict, list)) or all(not isinstance(v, (dict, list)) for v in items)
    if flat or (isinstance(value, list) and all(map(small, value))):
        return json.dumps(value, ensure_ascii=False)
    pad = " " * (depth + 1)
    if isinstance(value, dict):
        rows = [f"{pad}{json.dumps(k, ensure_ascii=False)}: {dumps(v, depth + 1)}" for k, v in value.items()]
        return "{\n" + ",\n".join(rows) + "\n" + " " * depth + "}"
    return "[\n" + ",\n".join(pad + dumps(v, depth + 1) for v in value) + "\n" + " " * depth + "]"


def write_json(path, value):
    path.write_text(dumps(rounded(value)) + "\n", encoding="utf-8")


def write_tensors(path, tensors):
    """Write arrays as F32 (integers as I32), after a look that none is broken."""
    arrays = {}
    for name, value in tensors.items():
        array = np.ascontiguousarray(np.asarray(value))
        array = array.astype(np.float32 if array.dtype.kind == "f" else np.int32)
        if array.dtype.kind == "f":
            assert np.isfinite(array).all(), f"{name} is not finite"
        assert array.size == 1 or array.min() != array.max(), f"{name} is constant"
        arrays[name] = array
    save_file(arrays, path)
    path.chmod(0o644)
