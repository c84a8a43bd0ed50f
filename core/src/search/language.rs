//! Which language a text's words belong to: told by script, and within the Latin script by the words of its grammar.
//!
//! A language is guessed anew from each text, and stored nowhere: the same text always gives the same.

use std::collections::HashMap;
use std::sync::LazyLock;

use rust_stemmers::Algorithm;

use super::text::{Word, WordKind};

/// A language of the Latin script whose inflections are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StemLanguage {
    /// English.
    English,
    /// German.
    German,
    /// French.
    French,
    /// Spanish.
    Spanish,
    /// Portuguese.
    Portuguese,
    /// Italian.
    Italian,
    /// Dutch.
    Dutch,
    /// Swedish.
    Swedish,
}

impl StemLanguage {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::English,
        Self::German,
        Self::French,
        Self::Spanish,
        Self::Portuguese,
        Self::Italian,
        Self::Dutch,
        Self::Swedish,
    ];

    /// Its stemmer.
    #[must_use]
    pub fn algorithm(self) -> Algorithm {
        match self {
            Self::English => Algorithm::English,
            Self::German => Algorithm::German,
            Self::French => Algorithm::French,
            Self::Spanish => Algorithm::Spanish,
            Self::Portuguese => Algorithm::Portuguese,
            Self::Italian => Algorithm::Italian,
            Self::Dutch => Algorithm::Dutch,
            Self::Swedish => Algorithm::Swedish,
        }
    }

    /// Words of its grammar, in plain form: in most sentences, and in few names.
    fn grammar(self) -> &'static [&'static str] {
        match self {
            Self::English => ENGLISH,
            Self::German => GERMAN,
            Self::French => FRENCH,
            Self::Spanish => SPANISH,
            Self::Portuguese => PORTUGUESE,
            Self::Italian => ITALIAN,
            Self::Dutch => DUTCH,
            Self::Swedish => SWEDISH,
        }
    }

    /// Letters that other languages here don't write.
    fn letters(self) -> &'static [char] {
        match self {
            Self::English | Self::Italian | Self::Dutch => &[],
            Self::German => &['ä', 'ö', 'ü', 'ß'],
            Self::French => &['ê', 'è', 'ç', 'œ', 'û', 'î'],
            Self::Spanish => &['ñ', 'í', 'ó'],
            Self::Portuguese => &['ã', 'õ', 'ç'],
            Self::Swedish => &['å', 'ä', 'ö'],
        }
    }
}

/// Some languages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Languages {
    bits: u8,
    /// The one that it surely is.
    sure: Option<StemLanguage>,
}

impl Languages {
    /// Those of the Latin script that a text may be written in: those with the most words of their grammar and
    /// letters of their own in it. All, where nothing tells.
    #[must_use]
    pub fn of(words: &[Word]) -> Self {
        let mut signs = [0_u32; StemLanguage::ALL.len()];
        let mut known = 0_u32;
        for word in words.iter().filter(|word| word.kind == WordKind::Spaced) {
            let has_letters = !word.written.is_ascii();
            let grammars = grammars_with(&word.plain);
            if !has_letters && grammars == 0 {
                continue;
            }
            for (n, (language, signs)) in StemLanguage::ALL.into_iter().zip(&mut signs).enumerate()
            {
                let has_letter =
                    has_letters && word.written.contains(|c| language.letters().contains(&c));
                *signs += u32::from(has_letter) + u32::from(grammars >> n & 1);
            }
            known += grammars.count_ones();
            // That many words are enough to tell.
            if known >= 200 {
                break;
            }
        }
        let most = signs.into_iter().max().unwrap_or_default();
        let mut languages = Self::default();
        for (n, signs) in signs.into_iter().enumerate() {
            languages.bits |= u8::from(signs == most) << n;
        }
        let mut best = languages.each();
        // A word of another grammar is often one of English (`door`, `war`), seldom the other way round.
        if let (Some(one), None) = (best.next(), best.next())
            && (most > 1 || one == StemLanguage::English)
        {
            languages.sure = Some(one);
        }
        languages
    }

    /// All of them.
    #[must_use]
    pub fn all() -> Self {
        Self {
            bits: u8::MAX,
            sure: None,
        }
    }

    /// The languages, one by one.
    pub fn each(self) -> impl Iterator<Item = StemLanguage> {
        let is_one = move |n: usize| self.bits & (1 << n) != 0;
        let all = StemLanguage::ALL.into_iter().enumerate();
        all.filter(move |(n, _)| is_one(*n))
            .map(|(_, language)| language)
    }

    /// Whether a plain word only holds the sentences together. Where no language is sure, it may be more.
    #[must_use]
    pub fn is_grammar(self, plain: &str) -> bool {
        match self.sure {
            Some(language) if grammars_with(plain) >> (language as u8) & 1 == 1 => true,
            _ => !plain.is_ascii() && RUSSIAN.binary_search(&plain).is_ok(),
        }
    }
}

/// The languages with this plain word in their grammar, one bit each in the order of [`Language::ALL`].
fn grammars_with(plain: &str) -> u8 {
    static GRAMMARS: LazyLock<HashMap<&str, u8>> = LazyLock::new(|| {
        let mut grammars = HashMap::new();
        for (n, language) in StemLanguage::ALL.into_iter().enumerate() {
            for word in language.grammar() {
                *grammars.entry(*word).or_default() |= 1 << n;
            }
        }
        grammars
    });
    GRAMMARS.get(plain).copied().unwrap_or(0)
}

const ENGLISH: &[&str] = &[
    "a", "about", "all", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by",
    "can", "could", "d", "did", "do", "does", "doesn", "don", "for", "from", "get", "got", "had",
    "has", "have", "he", "her", "here", "him", "his", "how", "i", "if", "in", "into", "is", "isn",
    "it", "its", "just", "ll", "m", "me", "my", "no", "not", "now", "of", "off", "on", "or", "our",
    "out", "please", "re", "s", "said", "say", "she", "should", "so", "some", "t", "than", "that",
    "the", "their", "them", "then", "there", "these", "they", "this", "those", "to", "up", "us",
    "ve", "was", "we", "were", "what", "whats", "when", "where", "which", "who", "whose", "why",
    "will", "with", "would", "you", "your",
];

const GERMAN: &[&str] = &[
    "aber", "als", "am", "an", "auch", "auf", "aus", "bei", "bin", "bis", "bitte", "da", "das",
    "dass", "dem", "der", "des", "die", "doch", "du", "ein", "eine", "einem", "einen", "einer",
    "er", "es", "euch", "fur", "gibt", "habe", "haben", "hat", "hier", "ich", "ihr", "im", "in",
    "ist", "ja", "jemand", "kann", "kein", "keine", "mein", "mit", "nach", "nicht", "noch", "nur",
    "oder", "schon", "sein", "sich", "sie", "sind", "so", "uber", "um", "und", "uns", "unser",
    "unsere", "vom", "von", "vor", "wann", "waren", "warum", "was", "weiss", "welche", "welcher",
    "wenn", "wer", "werden", "wie", "wir", "wird", "wo", "zu", "zum", "zur",
];

const FRENCH: &[&str] = &[
    "a", "alors", "au", "aux", "avec", "avons", "c", "ca", "ce", "ces", "cette", "chez", "comment",
    "d", "dans", "de", "des", "donc", "du", "elle", "elles", "en", "es", "est", "et", "etait",
    "ete", "faut", "il", "ils", "j", "je", "l", "la", "le", "les", "leur", "ma", "mais", "mes",
    "mon", "n", "ne", "nos", "notre", "nous", "on", "ont", "ou", "par", "pas", "pour", "pourquoi",
    "qu", "quand", "que", "quel", "quelle", "qui", "s", "sa", "se", "ses", "si", "sont", "sur",
    "tu", "un", "une", "vos", "votre", "vous", "y",
];

const SPANISH: &[&str] = &[
    "a", "al", "alguien", "como", "cual", "cuando", "cuanto", "de", "del", "desde", "donde", "el",
    "ella", "en", "es", "esta", "estan", "este", "esto", "estoy", "fue", "ha", "han", "hay", "la",
    "las", "le", "les", "lo", "los", "mas", "me", "mi", "muy", "no", "nos", "nuestra", "nuestro",
    "o", "para", "pero", "por", "porque", "que", "quien", "sabe", "se", "ser", "si", "sobre", "su",
    "sus", "te", "tiene", "tu", "un", "una", "y", "ya", "yo",
];

const PORTUGUESE: &[&str] = &[
    "a", "alguem", "ao", "aos", "as", "com", "como", "da", "das", "de", "do", "dos", "e", "ela",
    "ele", "em", "essa", "esse", "esta", "eu", "foi", "isso", "ja", "la", "mais", "mas", "me",
    "meu", "minha", "muito", "na", "nao", "nas", "no", "nos", "nossa", "nosso", "o", "onde", "os",
    "ou", "para", "pela", "pelo", "por", "qual", "quando", "que", "quem", "se", "sem", "ser",
    "seu", "sobre", "sua", "tem", "um", "uma", "voce",
];

const ITALIAN: &[&str] = &[
    "a", "al", "alla", "anche", "che", "chi", "ci", "cosa", "da", "dal", "dei", "del", "della",
    "delle", "di", "e", "gli", "ha", "hanno", "ho", "i", "il", "in", "io", "la", "le", "lo", "ma",
    "mi", "mio", "ne", "nel", "nella", "noi", "non", "o", "per", "perche", "piu", "quale",
    "quando", "quanto", "quello", "questa", "questo", "se", "si", "sono", "su", "sul", "tu", "un",
    "una", "uno",
];

const DUTCH: &[&str] = &[
    "aan", "als", "bij", "dan", "dat", "de", "deze", "die", "dit", "een", "en", "er", "geen",
    "had", "heb", "heeft", "het", "hij", "hoe", "hun", "iemand", "ik", "in", "is", "je", "kan",
    "maar", "me", "met", "mijn", "na", "naar", "niet", "nog", "nu", "of", "om", "onze", "ook",
    "op", "te", "tot", "uit", "van", "voor", "waar", "waarom", "wanneer", "was", "wat", "we",
    "wel", "wie", "wij", "worden", "wordt", "ze", "zich", "zijn", "zo",
];

const SWEDISH: &[&str] = &[
    "alla", "att", "av", "blir", "da", "de", "det", "detta", "du", "efter", "ej", "eller", "en",
    "ett", "for", "fran", "ha", "han", "har", "hon", "hur", "i", "inte", "jag", "kan", "med",
    "men", "mig", "min", "nar", "nu", "och", "om", "pa", "sa", "som", "upp", "ut", "vad", "vara",
    "varfor", "vem", "vi", "vid",
];

/// Taken for Russian by its script, also where another Slavic language is written.
const RUSSIAN: &[&str] = &[
    "а",
    "без",
    "бы",
    "был",
    "была",
    "были",
    "было",
    "быть",
    "в",
    "вам",
    "вас",
    "во",
    "вот",
    "все",
    "всех",
    "вы",
    "где",
    "да",
    "для",
    "до",
    "его",
    "ее",
    "если",
    "есть",
    "еще",
    "же",
    "за",
    "и",
    "из",
    "или",
    "им",
    "их",
    "к",
    "как",
    "какая",
    "какие",
    "какой",
    "когда",
    "кто",
    "ли",
    "мне",
    "мы",
    "на",
    "над",
    "нам",
    "нас",
    "наш",
    "наша",
    "не",
    "него",
    "нее",
    "нет",
    "ни",
    "но",
    "ну",
    "о",
    "об",
    "он",
    "она",
    "они",
    "от",
    "по",
    "под",
    "почему",
    "при",
    "про",
    "с",
    "сколько",
    "со",
    "так",
    "там",
    "то",
    "тот",
    "ты",
    "у",
    "уже",
    "чем",
    "что",
    "чтобы",
    "это",
    "этого",
    "этот",
    "я",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::text::words;

    #[test]
    fn grammars_are_sorted_and_plain() {
        let lists = StemLanguage::ALL.map(StemLanguage::grammar);
        for list in lists.into_iter().chain([RUSSIAN]) {
            let mut sorted = list.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(list, sorted, "sorted, each once");
            for word in list {
                assert_eq!(crate::search::text::plain(word), *word);
            }
        }
    }

    #[test]
    fn a_language_is_told_by_its_grammar_and_letters() {
        use StemLanguage::{Dutch, English, French, German, Portuguese, Spanish};
        let cases: [(&str, &[StemLanguage]); 7] = [
            ("the code is on the door", &[English]),
            ("Die Rechnung ist noch nicht da", &[German]),
            ("le mot de passe est dans le tiroir", &[French]),
            ("la contraseña está en el cajón", &[Spanish]),
            ("a senha não está com você", &[Portuguese]),
            ("het wachtwoord is van de buren", &[Dutch]),
            ("Passwörter geändert", &[German, StemLanguage::Swedish]),
        ];
        for (text, expected) in cases {
            let found: Vec<StemLanguage> = Languages::of(&words(text)).each().collect();
            assert_eq!(found, expected, "{text:?}");
        }
        assert_eq!(
            Languages::of(&words("Lisbon wifi password")),
            Languages::all()
        );
    }
}
