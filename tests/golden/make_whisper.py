"""Write whisper_transcripts.json and whisper_layers_*.safetensors from openai-whisper in float32."""
import contextlib
import csv
import importlib
from unittest import mock

import numpy as np
import soundfile
import torch
import torch.nn.functional as F
import whisper
from scipy.signal import resample_poly
from whisper.audio import N_FRAMES, N_SAMPLES, SAMPLE_RATE, log_mel_spectrogram, pad_or_trim
from whisper.decoding import GreedyDecoder
from whisper.tokenizer import get_tokenizer

from common import SAMPLE, arguments, load_whisper, write_json, write_tensors

transcribe_module = importlib.import_module("whisper.transcribe")

OPTIONS = {"temperature": 0.0, "fp16": False, "beam_size": None, "best_of": None}
THRESHOLDS = {"compression_ratio_threshold": 2.4, "logprob_threshold": -1.0, "no_speech_threshold": 0.6}
SEGMENT_KEYS = ["seek", "start", "end", "text", "tokens", "avg_logprob", "no_speech_prob", "compression_ratio",
                "temperature"]
TRANSLATED = ["es_hola_mundo.wav", "es_pangrama.wav", "fr_pangrama.wav"]
GAP, COPIES, LONG = 1.5, 3, "two_cities.wav"
NOISE = 1e-3


def would_retry(window):
    """Whether the default temperatures would go on from 0.0 to 0.2."""
    repetitive = window.compression_ratio > THRESHOLDS["compression_ratio_threshold"]
    unlikely = window.avg_logprob < THRESHOLDS["logprob_threshold"]
    silent = window.no_speech_prob > THRESHOLDS["no_speech_threshold"] and unlikely
    return (repetitive or unlikely) and not silent


class Watch:
    """Keeps what transcribe() does not give back: every window's result and its closest choice of a token."""

    def __init__(self, model):
        self.model, self.windows, self.margin = model, [], float("inf")
        self.update = GreedyDecoder.update

    @contextlib.contextmanager
    def on(self):
        watch = self

        def decode(segment, options):
            watch.margin = float("inf")
            result = whisper.decode(watch.model, segment, options)
            watch.windows.append((result, len(options.prompt), watch.margin))
            return result

        def update(decoder, tokens, logits, sum_logprobs):
            best, second = logits[0].topk(2).values.tolist()
            watch.margin = min(watch.margin, best - second)
            return watch.update(decoder, tokens, logits, sum_logprobs)

        with mock.patch.object(self.model, "decode", decode), mock.patch.object(GreedyDecoder, "update", update):
            yield


def noisy_log_mel(*args, **kwargs):
    mel = log_mel_spectrogram(*args, **kwargs)
    return mel + NOISE * torch.randn(mel.shape, generator=torch.Generator().manual_seed(1))


def tokens_of(result):
    return [s["tokens"] for s in result["segments"]]


def run(model, name, file, wave, task="transcribe", other_wave=None):
    watch = Watch(model)
    with watch.on():
        result = whisper.transcribe(model, wave, task=task, **OPTIONS)
    with mock.patch.object(transcribe_module, "log_mel_spectrogram", noisy_log_mel):
        noisy = whisper.transcribe(model, wave, task=task, **OPTIONS)
    one = {"model": name, "file": file, "task": task, "samples": len(wave), "language": result["language"]}
    if model.is_multilingual and task == "transcribe":
        mel = log_mel_spectrogram(wave, model.dims.n_mels, padding=N_SAMPLES)
        _, probs = model.detect_language(pad_or_trim(mel, N_FRAMES))
        one["language_probs"] = sorted(([k, p] for k, p in probs.items()), key=lambda kp: -kp[1])[:3]
    one["text"] = result["text"]
    one["segments"] = [{k: s[k] for k in SEGMENT_KEYS} for s in result["segments"]]
    one["windows"] = [
        {"prompt_tokens": prompt, "tokens": len(w.tokens), "avg_logprob": w.avg_logprob,
         "no_speech_prob": w.no_speech_prob, "compression_ratio": w.compression_ratio, "margin": margin,
         "would_retry": would_retry(w)}
        for w, prompt, margin in watch.windows]
    one["same_tokens_with_noise"] = tokens_of(noisy) == tokens_of(result)
    if other_wave is not None:
        one["same_tokens_with_resample_poly"] = (
            tokens_of(whisper.transcribe(model, other_wave, task=task, **OPTIONS)) == tokens_of(result))
    return one


def scipy_wave(path):
    """The file at 16 kHz by another resampler, or None where it needs none."""
    wave, rate = soundfile.read(path, dtype="float32")
    return None if rate == SAMPLE_RATE else resample_poly(wave, SAMPLE_RATE, rate).astype(np.float32)


def repeated(wave):
    gap = np.zeros(round(GAP * SAMPLE_RATE), np.float32)
    return np.concatenate([wave, *[gap, wave] * (COPIES - 1)])


def transcripts(fixtures, models):
    with open(fixtures / "audio" / "transcripts.tsv", encoding="utf-8", newline="") as table:
        languages = {row["file"]: row["language"] for row in csv.DictReader(table, delimiter="\t")}
    paths = {"jfk.wav": SAMPLE, **{file: fixtures / "audio" / file for file in languages}}
    waves = {file: whisper.load_audio(str(path)) for file, path in paths.items()}
    others = {file: scipy_wave(path) for file, path in paths.items()}
    runs = []
    for name, model in models.items():
        for file, wave in waves.items():
            if model.is_multilingual or languages.get(file, "en") == "en":
                runs.append(run(model, name, file, wave, other_wave=others[file]))
    runs.append(run(models["tiny.en"], "tiny.en", f"{LONG} * {COPIES}", repeated(waves[LONG]),
                    other_wave=repeated(others[LONG])))
    for file in TRANSLATED:
        runs.append(run(models["base"], "base", file, waves[file], task="translate"))
    return {
        "made_by": "whisper.transcribe() of openai-whisper 20250625, float32, CPU",
        "options": {**OPTIONS, "language": None, "word_timestamps": False, "condition_on_previous_text": True,
                    **THRESHOLDS},
        "long_clip": f"{LONG} {COPIES} times with {GAP} s of zeros between, after resampling",
        "margin": "smallest gap between the best and the second logit, after the rules, in the window",
        "same_tokens_with_noise": f"the tokens stay the same with normal noise of {NOISE} added to the log-mel",
        "would_retry": sorted({f"{r['model']} {r['task']} {r['file']}" for r in runs
                               if any(w["would_retry"] for w in r["windows"])}),
        "runs": runs,
    }


def encoder_stages(model, mel):
    """The encoder's output for mel [bins, frames], and the activations [positions, width] after each stage."""
    encoder, stages, hooks = model.encoder, {}, []

    def keep(module, stage, change=lambda x: x):
        def hook(_module, _inputs, output):
            stages[stage] = change(output[0])
        hooks.append(module.register_forward_hook(hook))

    keep(encoder.conv2, "encoder.conv", lambda x: F.gelu(x).T)
    for i, block in enumerate(encoder.blocks):
        keep(block, f"encoder.blocks.{i}")
    keep(encoder.ln_post, "encoder.ln_post")
    audio = model.embed_audio(mel[None])
    for hook in hooks:
        hook.remove()
    stages["encoder.embedded"] = stages["encoder.conv"] + encoder.positional_embedding
    return audio, stages


def layers(model, path, every_frame):
    """Stages for the first 30 s window of beckett.wav."""
    full = log_mel_spectrogram(whisper.load_audio(str(path)), model.dims.n_mels, padding=N_SAMPLES)
    content = full.shape[-1] - N_FRAMES
    silence = full[:, :N_FRAMES]  # log-mel of the audio and the silence after it: language detection hears this
    zeros = pad_or_trim(full[:, :content], N_FRAMES)  # transcribe() pads the log-mel itself with 0.0
    greedy = whisper.decode(model, zeros, whisper.DecodingOptions(language="en", fp16=False))
    tokenizer = get_tokenizer(model.is_multilingual, num_languages=model.num_languages, language="en",
                              task="transcribe")
    sot = list(tokenizer.sot_sequence)
    sequence = sot + greedy.tokens
    out = {"content_frames": np.array([content]), "tokens": np.array(sequence), "mel": silence.T[::every_frame]}
    for prefix, mel in (("", silence), ("zeros.", zeros)):
        audio, stages = encoder_stages(model, mel)
        for stage, value in stages.items():
            if not prefix or stage == "encoder.ln_post":
                out[prefix + stage] = value[::50]
        out[prefix + "logits.first"] = model.logits(torch.tensor([sot]), audio)[0, -1]
        logits = model.logits(torch.tensor([sequence]), audio)[0]
        positions = torch.arange(0, len(sequence), 5)
        top = logits[positions].topk(10)
        out[prefix + "logits.positions"] = positions
        out[prefix + "logits.top10_ids"] = top.indices
        out[prefix + "logits.top10_values"] = top.values
        out[prefix + "logits.logsumexp"] = logits[positions].logsumexp(-1)
    return out


def main():
    args = arguments(__doc__)
    models = {name: load_whisper(args.fixtures, name) for name in ("tiny.en", "base")}
    for name, model in models.items():
        tensors = layers(model, args.fixtures / "audio" / "beckett.wav", 1 if name == "tiny.en" else 25)
        write_tensors(args.out / f"whisper_layers_{name}.safetensors", tensors)
    write_json(args.out / "whisper_transcripts.json", transcripts(args.fixtures, models))


if __name__ == "__main__":
    main()
