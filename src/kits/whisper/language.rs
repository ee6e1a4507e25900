//! The languages of Whisper's vocabularies.

/// Code of the only language of the `.en` models.
pub const ENGLISH: &str = "en";

/// Codes and English names, in the order of their tokens; a model knows the first 99, or all hundred.
#[rustfmt::skip]
pub const ALL: [(&str, &str); 100] = [
    ("en", "english"), ("zh", "chinese"), ("de", "german"), ("es", "spanish"), ("ru", "russian"),
    ("ko", "korean"), ("fr", "french"), ("ja", "japanese"), ("pt", "portuguese"), ("tr", "turkish"),
    ("pl", "polish"), ("ca", "catalan"), ("nl", "dutch"), ("ar", "arabic"), ("sv", "swedish"),
    ("it", "italian"), ("id", "indonesian"), ("hi", "hindi"), ("fi", "finnish"),
    ("vi", "vietnamese"), ("he", "hebrew"), ("uk", "ukrainian"), ("el", "greek"), ("ms", "malay"),
    ("cs", "czech"), ("ro", "romanian"), ("da", "danish"), ("hu", "hungarian"), ("ta", "tamil"),
    ("no", "norwegian"), ("th", "thai"), ("ur", "urdu"), ("hr", "croatian"), ("bg", "bulgarian"),
    ("lt", "lithuanian"), ("la", "latin"), ("mi", "maori"), ("ml", "malayalam"), ("cy", "welsh"),
    ("sk", "slovak"), ("te", "telugu"), ("fa", "persian"), ("lv", "latvian"), ("bn", "bengali"),
    ("sr", "serbian"), ("az", "azerbaijani"), ("sl", "slovenian"), ("kn", "kannada"),
    ("et", "estonian"), ("mk", "macedonian"), ("br", "breton"), ("eu", "basque"),
    ("is", "icelandic"), ("hy", "armenian"), ("ne", "nepali"), ("mn", "mongolian"),
    ("bs", "bosnian"), ("kk", "kazakh"), ("sq", "albanian"), ("sw", "swahili"), ("gl", "galician"),
    ("mr", "marathi"), ("pa", "punjabi"), ("si", "sinhala"), ("km", "khmer"), ("sn", "shona"),
    ("yo", "yoruba"), ("so", "somali"), ("af", "afrikaans"), ("oc", "occitan"), ("ka", "georgian"),
    ("be", "belarusian"), ("tg", "tajik"), ("sd", "sindhi"), ("gu", "gujarati"), ("am", "amharic"),
    ("yi", "yiddish"), ("lo", "lao"), ("uz", "uzbek"), ("fo", "faroese"), ("ht", "haitian creole"),
    ("ps", "pashto"), ("tk", "turkmen"), ("nn", "nynorsk"), ("mt", "maltese"), ("sa", "sanskrit"),
    ("lb", "luxembourgish"), ("my", "myanmar"), ("bo", "tibetan"), ("tl", "tagalog"),
    ("mg", "malagasy"), ("as", "assamese"), ("tt", "tatar"), ("haw", "hawaiian"), ("ln", "lingala"),
    ("ha", "hausa"), ("ba", "bashkir"), ("jw", "javanese"), ("su", "sundanese"),
    ("yue", "cantonese"),
];

/// Other names that people use, and the codes they stand for.
const ALIASES: [(&str, &str); 12] = [
    ("burmese", "my"),
    ("castilian", "es"),
    ("flemish", "nl"),
    ("haitian", "ht"),
    ("letzeburgesch", "lb"),
    ("mandarin", "zh"),
    ("moldavian", "ro"),
    ("moldovan", "ro"),
    ("panjabi", "pa"),
    ("pushto", "ps"),
    ("sinhalese", "si"),
    ("valencian", "ca"),
];

/// Place of a code among the language tokens.
pub fn index(code: &str) -> Option<usize> {
    ALL.iter().position(|&(known, _)| known == code)
}

/// The code of a language given by code, alone or as the beginning of a locale (`pt-BR`), or by English name, in any case.
pub fn parse(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    if let Some((code, region)) = text.split_once(['-', '_'])
        && region.len() == 2
    {
        return index(code).map(|index| ALL[index].0);
    }
    let known = ALL
        .iter()
        .find(|&&(code, name)| code == text || name == text)
        .map(|&(code, _)| code);
    known.or_else(|| {
        ALIASES
            .iter()
            .find(|&&(name, _)| name == text)
            .map(|&(_, code)| code)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_known_by_code_name_and_alias() {
        for (text, code) in [
            ("de", "de"),
            ("German", "de"),
            ("HAITIAN CREOLE", "ht"),
            ("Mandarin", "zh"),
        ] {
            assert_eq!(parse(text), Some(code), "{text}");
        }
        for unknown in ["klingon", "", "xx-YY", "en-", "-"] {
            assert_eq!(parse(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn each_code_stands_once_and_each_alias_leads_to_one() {
        for (i, (code, name)) in ALL.iter().enumerate() {
            assert_eq!(index(code), Some(i), "{code}");
            assert_eq!(parse(name), Some(*code), "{name}");
        }
        assert!(ALIASES.iter().all(|(_, code)| index(code).is_some()));
    }
}
