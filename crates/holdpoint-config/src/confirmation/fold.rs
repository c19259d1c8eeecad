//! Text made comparable: case, white space, emphasis and the spelling of accents do not count.

use holdpoint_core::text::is_plain;

/// The text in lower case, with one space for each run of white space, accents joined to their letters, and without
/// emphasis and characters that do not show.
pub(super) fn folded(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_whitespace() {
            if !folded.ends_with(' ') {
                folded.push(' ');
            }
        } else if is_plain(c) && !matches!(c, '*' | '_' | '`') {
            for c in c.to_lowercase() {
                push(&mut folded, c);
            }
        }
    }
    folded
}

/// Adds a character; an accent becomes part of the letter before it where there is such a letter.
fn push(folded: &mut String, c: char) {
    let joined = folded.chars().next_back().and_then(|letter| join(letter, c));
    if let Some(joined) = joined {
        folded.pop();
        folded.push(joined);
    } else {
        folded.push(c);
    }
}

/// The letter with the accent, for Latin letters in lower case.
fn join(letter: char, accent: char) -> Option<char> {
    let (_, pairs) = ACCENTS.iter().find(|(mark, _)| *mark == accent)?;
    let mut letters = pairs.chars();
    while let (Some(plain), Some(joined)) = (letters.next(), letters.next()) {
        if plain == letter {
            return Some(joined);
        }
    }
    None
}

/// For each accent: a letter, then the same letter with the accent, and so on.
const ACCENTS: [(char, &str); 18] = [
    ('\u{300}', "aàeèiìnǹoòuùwẁyỳâầêềôồăằơờưừüǜ"),
    ('\u{301}', "aácćeégǵiíkḱlĺmḿnńoópṕrŕsśuúwẃyýzźâấêếôốăắơớưứüǘæǽøǿ"),
    ('\u{302}', "aâcĉeêgĝhĥiîjĵoôsŝuûwŵyŷzẑạậẹệọộ"),
    ('\u{303}', "aãeẽiĩnñoõuũvṽyỹâẫêễôỗăẵơỡưữ"),
    ('\u{304}', "aāeēgḡiīoōuūyȳ"),
    ('\u{306}', "aăeĕgğiĭoŏuŭạặ"),
    ('\u{307}', "aȧbḃcċdḋeėfḟgġhḣmṁnṅoȯpṗrṙsṡtṫwẇxẋyẏzż"),
    ('\u{308}', "aäeëhḧiïoötẗuüwẅxẍyÿ"),
    ('\u{309}', "aảeẻiỉoỏuủyỷâẩêểôổăẳơởưử"),
    ('\u{30a}', "aåuůwẘyẙ"),
    ('\u{30b}', "oőuű"),
    ('\u{30c}', "aǎcčdďeěgǧhȟiǐjǰkǩlľnňoǒrřsštťuǔzž"),
    ('\u{31b}', "oơuưóớòờọợúứùừụự"),
    ('\u{323}', "aạbḅdḍeẹhḥiịkḳlḷmṃnṇoọrṛsṣtṭuụvṿwẉyỵzẓâậêệôộăặơợưự"),
    ('\u{326}', "sștț"),
    ('\u{327}', "cçdḑeȩgģhḩkķlļnņrŗsştţ"),
    ('\u{328}', "aąeęiįoǫuų"),
    ('\u{331}', "bḇdḏkḵlḻnṉrṟtṯzẕ"),
];
