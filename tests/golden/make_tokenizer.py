"""Write tokenizer.json: facts of openai-whisper's tokenizers."""
from whisper.tokenizer import get_tokenizer

from common import arguments, write_json

TEXTS = [
    "", " ", "  ", "\n", "\n\n  x", "a", " Hello, world!", "Hello world", "don't we'll I'VE they'Re it's",
    "1234567890 1,234.5 3rd", " ask not what your country can do for you", "tabs\tand\r\nline ends \n \n",
    "trailing space ", "   three leading", "ÀÉÎõü ß ſ ŉ", "naïve café cafe\u0301", "Ünïcödé—dash…dots",
    "“quotes” ‘single’ «guillemets»", " ♪ la la ♪♪♪ ♫", "日本語のテキストです。", "我想要一杯咖啡，谢谢！", "नमस्ते दुनिया",
    "Привет, мир! Ёлка", "مرحبا بالعالم", "안녕하세요 세계", "สวัสดีชาวโลก", "👍🏽 👩‍👩‍👧 🇩🇪 𝒳",
    "zero\u200bwidth\u00a0nbsp\u3000ideographic", "½ ² Ⅷ ٣ x²", "http://a.b/c?d=e&f=%20#g", "_snake_case CamelCase ALLCAPS",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "!!!???... --- (((", "\u0000\u0007\u007f", "\ufeffbom \ufffd \U0010ffff",
    "<|endoftext|> and <|0.00|> <|en|>",
]
SPLIT = ["日本語 👍🏽", "नमस्ते 𝒳", "Ünïcödé…", "สวัสดี", "ᚠᛇ 🦀 ☃ ⠓"]
WORDS = {"en": " Hello, world! It's 5-3 naïve… (yes)", "de": " Größe „zwei“ 👍🏽 ok.", "ja": "日本語のテキスト、です。"}
SOT = [("en", "transcribe"), ("de", "transcribe"), ("es", "translate"), ("ja", "translate"), ("su", "transcribe"),
       ("yue", "transcribe")]
SPECIAL = ["eot", "sot", "translate", "transcribe", "sot_lm", "sot_prev", "no_speech", "no_timestamps",
           "timestamp_begin"]


def ordinary(tokenizer, text):
    """Ids of the text where special tokens are text like any other."""
    return tokenizer.encoding.encode(text, disallowed_special=())


def facts(multilingual, num_languages):
    tokenizer = get_tokenizer(multilingual, num_languages=num_languages)
    out = {
        "multilingual": multilingual, "num_languages": num_languages if multilingual else 0,
        "vocabulary": tokenizer.encoding.n_vocab,
        "special": {name: getattr(tokenizer, name) for name in SPECIAL},
        "last_timestamp": tokenizer.special_tokens["<|30.00|>"],
        "languages": dict(sorted(
            ((code, tokenizer.to_language_token(code)) for code in tokenizer.all_language_codes), key=lambda kv: kv[1])),
        "non_speech_tokens": list(tokenizer.non_speech_tokens),
    }
    if not multilingual:  # the English vocabulary has language tokens too, unused
        out["sot_sequence"] = list(tokenizer.sot_sequence)
        out["sot_sequence_including_notimestamps"] = list(tokenizer.sot_sequence_including_notimestamps)
    else:
        out["sot_sequences"] = []
        for language, task in SOT:
            if language in out["languages"]:
                known = get_tokenizer(True, num_languages=num_languages, language=language, task=task)
                out["sot_sequences"].append({
                    "language": language, "task": task, "sequence": list(known.sot_sequence),
                    "including_notimestamps": list(known.sot_sequence_including_notimestamps)})
    out["texts"] = [{"text": text, "ids": ordinary(tokenizer, text)} for text in TEXTS]
    for one in out["texts"]:
        assert tokenizer.decode(one["ids"]) == one["text"]

    cut = []
    for text in SPLIT:
        ids = ordinary(tokenizer, text)
        cut += [ids[:end] for end in range(1, len(ids))] + [ids[start:] for start in range(1, len(ids))]
    unique = [list(ids) for ids in dict.fromkeys(map(tuple, cut))]
    out["cut_characters"] = [{"ids": ids, "text": tokenizer.decode(ids, errors="replace")} for ids in unique]
    out["cut_characters"] = [one for one in out["cut_characters"] if "\ufffd" in one["text"]]

    begin = tokenizer.timestamp_begin
    timed = [begin, *ordinary(tokenizer, " Hello."), begin + 75, begin + 75, *ordinary(tokenizer, " Bye."), begin + 1500]
    out["timestamps"] = {"ids": timed, "text": tokenizer.decode(timed),
                         "with_timestamps": tokenizer.decode_with_timestamps(timed)}
    out["words"] = []
    for language, text in WORDS.items():
        known = get_tokenizer(multilingual, num_languages=num_languages, language=language, task="transcribe")
        ids = ordinary(known, text) + [known.eot]
        if multilingual or language == "en":
            words, word_ids = known.split_to_word_tokens(ids)
            out["words"].append({"language": language, "ids": ids, "words": words, "word_ids": word_ids})
    return out


def main():
    args = arguments(__doc__, fixtures=False)
    write_json(args.out / "tokenizer.json", {
        "gpt2": facts(False, 99), "multilingual_99": facts(True, 99), "multilingual_100": facts(True, 100)})


if __name__ == "__main__":
    main()
