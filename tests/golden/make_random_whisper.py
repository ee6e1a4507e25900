"""Write random_whisper/: two tiny Whisper models with random weights, and what transformers computes with them."""
import os

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import torch
from safetensors.torch import save_file
from transformers import WhisperConfig, WhisperForConditionalGeneration
from transformers.models.whisper.modeling_whisper import sinusoids

from common import arguments, write_json, write_tensors

SEED = 1  # one with which no two tokens are close
FRAMES, STEP = 3000, 50
PROMPT, LENGTH = 4, 12

MODELS = {
    "wide": {
        "num_mel_bins": 128, "d_model": 64, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
        "encoder_ffn_dim": 128, "decoder_ffn_dim": 96, "encoder_layers": 3, "decoder_layers": 2, "vocab_size": 1000,
        "torch_dtype": "float16",
    },
    "narrow": {
        "num_mel_bins": 80, "d_model": 30, "encoder_attention_heads": 3, "decoder_attention_heads": 3,
        "encoder_ffn_dim": 120, "decoder_ffn_dim": 120, "encoder_layers": 1, "decoder_layers": 3, "vocab_size": 300,
        "torch_dtype": "float32",
    },
}


def config_json(sizes):
    """A config.json as the published ones are, of a model with these sizes."""
    end = sizes["vocab_size"] - 2
    config = {
        "activation_dropout": 0.0, "activation_function": "gelu", "architectures": ["WhisperForConditionalGeneration"],
        "attention_dropout": 0.0, "bos_token_id": end, "decoder_layerdrop": 0.0, "decoder_start_token_id": end + 1,
        "dropout": 0.0, "encoder_layerdrop": 0.0, "eos_token_id": end, "init_std": 0.02, "is_encoder_decoder": True,
        "max_source_positions": FRAMES // 2, "max_target_positions": 448, "model_type": "whisper",
        "num_hidden_layers": sizes["encoder_layers"], "pad_token_id": end, "scale_embedding": False, "use_cache": True,
        **sizes,
    }
    return dict(sorted(config.items()))


def random_tensor(rng, name, shape):
    """Values that keep the activations near 1, the attention picky, the logits apart, and the text from repeating."""
    fan_in = np.prod(shape[1:])
    if name.endswith("layer_norm.weight"):
        gain = rng.uniform(0.5, 1.5, shape)
        # With gains of either sign at the end, a token isn't its own likeliest successor.
        return gain * rng.choice([-1, 1], shape) if name == "model.decoder.layer_norm.weight" else gain
    noise = rng.standard_normal(shape)
    if name == "model.encoder.embed_positions.weight":
        return sinusoids(*shape).double().numpy() + 0.05 * noise  # the usual table, and something of its own
    if name.endswith(".bias"):
        return 0.2 * noise
    if name == "model.decoder.embed_positions.weight":
        return noise
    if name == "model.decoder.embed_tokens.weight":
        return 0.7 * noise
    if name.endswith("encoder_attn.out_proj.weight"):
        return 0.5 * noise / fan_in**0.5
    if ".q_proj." in name or ".k_proj." in name:
        return noise * (3 / fan_in) ** 0.5
    return noise / fan_in**0.5


def write_model(directory, rng, config):
    """Write config.json and model.safetensors."""
    write_json(directory / "config.json", config)
    with torch.device("meta"):
        model = WhisperForConditionalGeneration(WhisperConfig.from_dict(config))
    shapes = {name: tuple(p.shape) for name, p in model.named_parameters() if name != "proj_out.weight"}
    dtype = getattr(torch, config["torch_dtype"])
    tensors = {name: torch.from_numpy(random_tensor(rng, name, shapes[name])).to(dtype) for name in sorted(shapes)}
    save_file(tensors, directory / "model.safetensors", {"format": "pt"})
    (directory / "model.safetensors").chmod(0o644)


def read_model(directory, dtype=torch.float32):
    """The model as stored; nothing may be missing, left over or initialised anew."""
    model, info = WhisperForConditionalGeneration.from_pretrained(
        directory, dtype=dtype, attn_implementation="eager", output_loading_info=True)
    assert not any(info.values()), info
    return model.eval()


def input_features(bins):
    """A made-up log-mel, [frames, bins]."""
    t, m = np.arange(FRAMES)[:, None], np.arange(bins)[None, :]
    return (0.6 * np.sin(0.37 * m + 0.011 * t) + 0.4 * np.cos(0.05 * m - 0.07 * t)).astype(np.float32)


def watched(part, name, keep):
    """Hooks on an encoder or decoder that put into `keep` what goes into its blocks and what each block gives."""
    def block(i):
        def after(_module, _inputs, output):
            keep[f"{name}.blocks.{i}"] = (output if torch.is_tensor(output) else output[0])[0].clone()
        return after

    def before(_module, inputs):
        keep[f"{name}.embedded"] = inputs[0][0].clone()

    handles = [part.layers[0].register_forward_pre_hook(before)]
    return handles + [layer.register_forward_hook(block(i)) for i, layer in enumerate(part.layers)]


def assert_picky(attentions, what):
    """No layer's attention may be spread evenly, nor all on one position."""
    for i, weights in enumerate(attentions):
        visible = (weights[0] > 0).sum(-1).double()
        spread = torch.special.entr(weights[0].double()).sum(-1).exp() / visible  # 1: evenly over all positions
        spread = spread[:, visible[0] > 1].mean(-1)
        assert (spread < 0.85).all() and (spread > 2 / visible.max()).all(), f"{what} {i}: {spread}"


def goldens(model, ids):
    """What the model computes, by key."""
    config = model.config
    dtype = model.get_input_embeddings().weight.dtype
    features = torch.from_numpy(input_features(config.num_mel_bins).T.copy()).to(dtype)[None]
    ids = torch.from_numpy(ids)[None]
    keep = {}
    encoder, decoder = model.get_encoder(), model.get_decoder()
    handles = watched(encoder, "encoder", keep) + watched(decoder, "decoder", keep)
    out = model(input_features=features, decoder_input_ids=ids, output_hidden_states=True, output_attentions=True,
                use_cache=False)
    for handle in handles:
        handle.remove()
    assert_picky(out.encoder_attentions, "attention of encoder block")
    assert_picky(out.decoder_attentions, "attention of decoder block")
    assert_picky(out.cross_attentions, "cross-attention of decoder block")
    keep["encoder.ln_post"] = out.encoder_last_hidden_state[0]
    keep["decoder.ln"] = out.decoder_hidden_states[-1][0]
    keep["logits"] = out.logits[0]
    tensors = {k: v[::STEP] if k.startswith("encoder.") else v for k, v in keep.items()}

    text = ids[:, :PROMPT]
    for _ in range(LENGTH):
        logits = model(encoder_outputs=(out.encoder_last_hidden_state,), decoder_input_ids=text, use_cache=False).logits
        best, second = logits[0, -1].topk(2).values.tolist()
        assert best - second > 0.1, "two tokens are too close"
        text = torch.cat([text, logits[:, -1].argmax(-1, keepdim=True)], 1)
    greedy = text[0, PROMPT:]
    assert len(set(greedy.tolist())) > LENGTH // 2, f"the greedy text repeats itself: {greedy}"
    return {"decoder_input_ids": ids[0], **tensors, "greedy_ids": greedy}


def assert_sound(tensors):
    """Every row and every column differs from the others', and the logits are well apart."""
    for name, value in tensors.items():
        if value.ndim == 2:
            assert (value.std(0) > 0.05).all() and (value.std(1) > 0.2).all(), f"{name} is nearly constant"
            assert value.abs().max() < 50, f"{name} has outliers"
    assert (tensors["logits"].std(1) > 1.5).all(), "the logits are too close to each other"


def assert_exact(tensors, exact):
    """float64 gives the same."""
    for name, value in tensors.items():
        assert (value - exact[name]).abs().max() < 2e-5, f"{name} is inexact"


def assert_every_tensor_counts(model, tensors):
    """Exchanging any one tensor by a plain one must be seen in the logits."""
    features = torch.from_numpy(input_features(model.config.num_mel_bins).T.copy())[None]
    inputs = {"input_features": features, "decoder_input_ids": tensors["decoder_input_ids"][None], "use_cache": False}
    for name, parameter in model.named_parameters():
        stored = parameter.clone()
        if name.endswith("layer_norm.weight"):
            parameter.fill_(1)
        elif name == "model.encoder.embed_positions.weight":
            parameter.copy_(sinusoids(*parameter.shape))
        else:
            parameter.zero_()
        change = (model(**inputs).logits[0] - tensors["logits"]).abs().max()
        parameter.copy_(stored)
        assert change > 0.02, f"{name} hardly counts: {change}"


def main():
    args = arguments(__doc__, fixtures=False)
    for name, sizes in MODELS.items():
        directory = args.out / "random_whisper" / name
        directory.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(SEED)
        config = config_json(sizes)
        ids = rng.integers(0, config["vocab_size"], LENGTH)
        write_model(directory, rng, config)
        model = read_model(directory)
        tensors = goldens(model, ids)
        assert_sound(tensors)
        assert_exact(tensors, goldens(read_model(directory, torch.float64), ids))
        assert_every_tensor_counts(model, tensors)
        write_tensors(directory / "golden.safetensors", tensors)
        for file in directory.iterdir():
            assert file.stat().st_size < 1_000_000, f"{file.name} is too large"


if __name__ == "__main__":
    main()
