//! Which of the languages that ship a text is in, read from its letters alone.

/// A language that the server's own labels come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Language {
    /// Vietnamese.
    Vietnamese,
    /// English, and whatever else does not ship.
    English,
    /// Chinese.
    Chinese,
    /// Japanese.
    Japanese,
}

impl Language {
    /// The language of an agent's locale, such as `vi` or `zh-Hans`, where it ships; else that of a text.
    pub(in super::super) fn of(locale: Option<&str>, text: &str) -> Self {
        locale.and_then(of_locale).unwrap_or_else(|| of_text(text))
    }
}

fn of_locale(locale: &str) -> Option<Language> {
    let primary = locale.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase();
    match primary.as_str() {
        "vi" => Some(Language::Vietnamese),
        "en" => Some(Language::English),
        "zh" => Some(Language::Chinese),
        "ja" => Some(Language::Japanese),
        _ => None,
    }
}

/// Kana are Japanese, other ideographs Chinese. Vietnamese has letters of its own, or else words of one syllable.
fn of_text(text: &str) -> Language {
    if text.chars().any(is_kana) {
        Language::Japanese
    } else if text.chars().any(is_ideograph) {
        Language::Chinese
    } else if text.chars().any(is_vietnamese) || sounds_vietnamese(text) {
        Language::Vietnamese
    } else {
        Language::English
    }
}

fn is_kana(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' | '\u{ff66}'..='\u{ff9d}')
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

/// Letters with the marks that hardly any other language has: horns, hooks above, dots below, two marks at once. The last
/// three are the marks alone, as texts have them whose letters are taken apart.
fn is_vietnamese(c: char) -> bool {
    matches!(c, 'ơ' | 'Ơ' | 'ư' | 'Ư' | '\u{1ea0}'..='\u{1ef9}' | '\u{309}' | '\u{31b}' | '\u{323}')
}

/// Whether the text has letters that Vietnamese shares with other languages, and nearly all its words are syllables as
/// only Vietnamese writes them.
fn sounds_vietnamese(text: &str) -> bool {
    let words: Vec<String> =
        text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    let is_marked = words.iter().any(|word| !word.is_ascii() && is_syllable(word));
    let others = words.iter().filter(|word| !is_syllable(word)).count();
    is_marked && others * 4 <= words.len()
}

/// Consonants at the beginning of a syllable.
const ONSETS: [&str; 27] = [
    "ngh", "ng", "nh", "ch", "gh", "gi", "kh", "ph", "qu", "th", "tr", "b", "c", "d", "đ", "g", "h", "k", "l", "m",
    "n", "p", "r", "s", "t", "v", "x",
];

/// Consonants at its end.
const CODAS: [&str; 9] = ["", "c", "ch", "m", "n", "ng", "nh", "p", "t"];

fn is_syllable(word: &str) -> bool {
    // More than one reading is possible: `gì` has its vowel in what looks like an onset.
    let mut rests = ONSETS.iter().filter_map(|onset| word.strip_prefix(onset)).chain([word]);
    rests.any(|rest| {
        let vowels = rest.chars().take_while(|c| is_vowel(*c)).count();
        let coda: String = rest.chars().skip(vowels).collect();
        (1..=3).contains(&vowels) && CODAS.contains(&coda.as_str())
    })
}

fn is_vowel(c: char) -> bool {
    matches!(
        c,
        'a' | 'e'
            | 'i'
            | 'o'
            | 'u'
            | 'y'
            | 'à'
            | 'á'
            | 'â'
            | 'ã'
            | 'ă'
            | 'è'
            | 'é'
            | 'ê'
            | 'ì'
            | 'í'
            | 'ĩ'
            | 'ò'
            | 'ó'
            | 'ô'
            | 'õ'
            | 'ù'
            | 'ú'
            | 'ũ'
            | 'ý'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_says_its_language() {
        for (text, language) in [
            ("Thảo muốn tập trung vào mục tiêu nào?", Language::Vietnamese),
            ("Nhóm ngành quan tâm?", Language::Vietnamese),
            ("Thời gian nắm giữ dự kiến?", Language::Vietnamese),
            ("The\u{302}\u{301} na\u{300}o thi\u{300} đu\u{31b}o\u{31b}\u{323}c?", Language::Vietnamese),
            ("Mua khi nào, bao nhiêu?", Language::Vietnamese),
            ("Đi đâu?", Language::Vietnamese),
            ("Which one?", Language::English),
            ("Can you do it on time?", Language::English),
            ("Qual é a opção?", Language::English),
            ("Préférez-vous le café ou le thé?", Language::English),
            ("¿Qué quieres comprar mañana?", Language::English),
            ("Što želite među njima, čaj?", Language::English),
            ("您想要哪一个？", Language::Chinese),
            ("どれにしますか？", Language::Japanese),
            ("第三の目標", Language::Japanese),
            ("", Language::English),
        ] {
            assert_eq!(Language::of(None, text), language, "{text}");
        }
    }

    #[test]
    fn a_locale_comes_before_the_text_unless_it_does_not_ship() {
        assert_eq!(Language::of(Some("vi"), "Which one?"), Language::Vietnamese);
        assert_eq!(Language::of(Some("ZH-Hans"), "Which one?"), Language::Chinese);
        assert_eq!(Language::of(Some("ja_JP"), "Which one?"), Language::Japanese);
        assert_eq!(Language::of(Some("en"), "Đi đâu?"), Language::English);
        assert_eq!(Language::of(Some("fr"), "Đi đâu?"), Language::Vietnamese);
    }
}
