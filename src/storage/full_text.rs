//! The words of texts, and which texts match: one tokenizer for all engines, whatever their databases have.
//!
//! The tables are those of the tokenizer `unicode61 remove_diacritics 2` of SQLite: letters, numbers and characters for
//! private use form words, case and diacritics are ignored. A test compares every character with SQLite. There are two
//! differences: in scripts that are written without spaces between words, every character is a word, and the wide forms of
//! Latin letters and digits are equal to the narrow ones.

use std::ops::Range;

use super::interface::{Term, Terms};
use crate::artifact::Field;

/// Words are compared up to this length.
const MAX_WORD_BYTES: usize = 32_768;

/// A word of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::storage) struct Word {
    /// The form in which it is compared.
    pub(in crate::storage) form: String,
    /// Its place in the text.
    pub(in crate::storage) range: Range<usize>,
}

impl AsRef<[u8]> for Word {
    fn as_ref(&self) -> &[u8] {
        self.form.as_bytes()
    }
}

/// Returns the words of a text, in order.
pub(in crate::storage) fn words(text: &str) -> impl Iterator<Item = Word> + '_ {
    let mut characters = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (start, first) =
            characters.find(|(_, character)| is_of_word(*character) || is_word(*character))?;
        let mut word = Word { form: String::new(), range: start..start };
        word.push(start, first);
        let continues = |character: char| {
            is_diacritic(character) || is_of_word(character) && !is_word(first) && !is_word(character)
        };
        while let Some((at, character)) = characters.next_if(|(_, character)| continues(*character)) {
            word.push(at, character);
        }
        Some(word)
    })
}

/// Returns the forms of the words of a text, separated by spaces: the same words for every tokenizer that splits at spaces.
pub(in crate::storage) fn separated(text: &str) -> String {
    let mut separated = String::with_capacity(text.len());
    for word in words(text) {
        separated.push_str(&word.form);
        separated.push(' ');
    }
    separated
}

impl Word {
    fn push(&mut self, at: usize, character: char) {
        if let Some(form) = folded(character)
            && self.form.len() + form.len_utf8() <= MAX_WORD_BYTES
        {
            self.form.push(form);
        }
        self.range.end = at + character.len_utf8();
    }
}

/// Words that stand one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::storage) struct Phrase {
    /// The forms of the words; at least one.
    pub(in crate::storage) words: Vec<String>,
    /// Whether words that begin with the last one also match.
    pub(in crate::storage) is_prefix: bool,
}

/// Search terms as words. Terms without words are left out, and so are alternatives without terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::storage) struct FullTextQuery {
    pub(in crate::storage) alternatives: Vec<Vec<Phrase>>,
    fields: Vec<Field>,
}

/// An occurrence of a phrase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::storage) struct PhraseOccurrence {
    /// The numbers of the words, from 0.
    pub(in crate::storage) words: Range<usize>,
    /// The number of the phrase among those of all alternatives.
    pub(in crate::storage) phrase: usize,
}

impl Phrase {
    /// Returns `None` for a term without words.
    fn new(term: &Term) -> Option<Self> {
        let words: Vec<String> = words(&term.text).map(|word| word.form).collect();
        (!words.is_empty()).then_some(Self { words, is_prefix: term.is_prefix })
    }

    /// Returns the numbers of the words at which the phrase begins.
    pub(in crate::storage) fn occurrences<'s, W: AsRef<[u8]>>(
        &'s self,
        text: &'s [W],
    ) -> impl Iterator<Item = usize> + 's {
        let windows = text.windows(self.words.len()).enumerate();
        windows.filter(|(_, window)| self.is_at(window)).map(|(at, _)| at)
    }

    fn is_at<W: AsRef<[u8]>>(&self, window: &[W]) -> bool {
        let (Some((last, first)), Some((found, before))) = (self.words.split_last(), window.split_last())
        else {
            return false;
        };
        let found = found.as_ref();
        let is_last =
            if self.is_prefix { found.starts_with(last.as_bytes()) } else { found == last.as_bytes() };
        is_last && first.iter().zip(before).all(|(expected, found)| expected.as_bytes() == found.as_ref())
    }
}

impl FullTextQuery {
    pub(in crate::storage) fn new(terms: &Terms) -> Self {
        let phrases = |terms: &Vec<Term>| terms.iter().filter_map(Phrase::new).collect();
        let alternatives = terms.alternatives.iter().map(phrases);
        let alternatives = alternatives.filter(|phrases: &Vec<Phrase>| !phrases.is_empty()).collect();
        Self { alternatives, fields: terms.fields.clone() }
    }

    /// Returns whether nothing can match.
    pub(in crate::storage) fn is_empty(&self) -> bool {
        self.alternatives.is_empty()
    }

    /// Returns the phrases of all alternatives.
    pub(in crate::storage) fn phrases(&self) -> impl Iterator<Item = &Phrase> {
        self.alternatives.iter().flatten()
    }

    /// Returns whether passages of a field are searched.
    pub(in crate::storage) fn has_field(&self, field: Field) -> bool {
        self.fields.is_empty() || self.fields.contains(&field)
    }

    /// Returns the fields, all if there are none.
    pub(in crate::storage) fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Returns the occurrences of the phrases of those alternatives that match, in order, or `None` if no alternative
    /// does.
    pub(in crate::storage) fn occurrences<W: AsRef<[u8]>>(
        &self,
        text: &[W],
    ) -> Option<Vec<PhraseOccurrence>> {
        let mut occurrences = Vec::new();
        let (mut number, mut is_match) = (0, false);
        for phrases in &self.alternatives {
            let found: Vec<Vec<usize>> =
                phrases.iter().map(|phrase| phrase.occurrences(text).collect()).collect();
            if found.iter().all(|found| !found.is_empty()) {
                is_match = true;
                for (at, (phrase, starts)) in phrases.iter().zip(found).enumerate() {
                    let occurrence = |start| PhraseOccurrence {
                        words: start..start + phrase.words.len(),
                        phrase: number + at,
                    };
                    occurrences.extend(starts.into_iter().map(occurrence));
                }
            }
            number += phrases.len();
        }
        occurrences.sort_unstable_by_key(|occurrence| (occurrence.words.start, occurrence.phrase));
        is_match.then_some(occurrences)
    }
}

impl Terms {
    /// Returns the byte ranges of `text`, a passage of `field`, that match, in order, or `None` if the text as a whole does
    /// not match.
    #[must_use]
    pub fn matching_ranges(&self, field: Field, text: &str) -> Option<Vec<Range<usize>>> {
        let query = FullTextQuery::new(self);
        if !query.has_field(field) {
            return None;
        }
        let words: Vec<Word> = words(text).collect();
        query.occurrences(&words).map(|occurrences| ranges(&occurrences, &words))
    }
}

/// Returns the places of the occurrences. Those that have words in common are one.
fn ranges(occurrences: &[PhraseOccurrence], words: &[Word]) -> Vec<Range<usize>> {
    let mut joined: Vec<Range<usize>> = Vec::new();
    for PhraseOccurrence { words, .. } in occurrences {
        match joined.last_mut() {
            Some(last) if words.start < last.end => last.end = last.end.max(words.end),
            _ => joined.push(words.clone()),
        }
    }
    let place = |range: Range<usize>| {
        let first = words.get(range.start)?;
        Some(first.range.start..words.get(range.end.checked_sub(1)?)?.range.end)
    };
    joined.into_iter().filter_map(place).collect()
}

/// Returns whether a character is a word of its own: a letter, a vowel sign or a digit of a script in which words are not
/// separated by spaces, or, as in Korean, are inflected by syllables. A query of several such characters is a phrase, so
/// that it is found within longer words.
pub(super) fn is_word(character: char) -> bool {
    let code = u32::from(character);
    let after = UNSPACED.partition_point(|(first, _)| *first <= code);
    after.checked_sub(1).and_then(|at| UNSPACED.get(at)).is_some_and(|(_, last)| code <= *last)
}

/// Returns whether a character can begin a word of several characters.
pub(super) fn is_of_word(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_alphanumeric();
    }
    let code = u32::from(character);
    let after = WORDS.partition_point(|(first, _)| *first <= code);
    after.checked_sub(1).and_then(|at| WORDS.get(at)).is_some_and(|(_, last)| code <= *last)
}

/// Returns whether a character is a diacritic, which belongs to the word before it and is ignored.
pub(super) fn is_diacritic(character: char) -> bool {
    ('\u{300}'..='\u{331}').contains(&character) && folded(character).is_none()
}

/// Returns the form in which a character is compared, or `None` if it is ignored.
pub(super) fn folded(character: char) -> Option<char> {
    if character.is_ascii() {
        return Some(character.to_ascii_lowercase());
    }
    let code = u32::from(character);
    let after = FORMS.partition_point(|(first, ..)| *first <= code);
    let run = after.checked_sub(1).and_then(|at| FORMS.get(at));
    match run {
        Some((first, last, step, to, to_step)) if code <= *last && (code - first).is_multiple_of(*step) => {
            let form = to + (code - first) / step * to_step;
            char::from_u32(form).filter(|form| *form != '\0')
        }
        _ => Some(character),
    }
}

/// The ranges of characters that are words: the first and the last. Thai, Lao, Tibetan, Myanmar, Hangul jamo, Khmer; CJK
/// radicals, ideographic marks and numerals, Hiragana, Katakana, Bopomofo, Hangul letters, ideographs, Hangul syllables,
/// and the same in the compatibility and supplementary blocks.
#[rustfmt::skip]
const UNSPACED: [(u32, u32); 44] = [
    (0x0e01, 0x0e3a), (0x0e40, 0x0e4e), (0x0e50, 0x0e59), (0x0e81, 0x0ebd), (0x0ec0, 0x0ece), (0x0ed0, 0x0edf),
    (0x0f00, 0x0f00), (0x0f20, 0x0f33), (0x0f40, 0x0f84), (0x0f88, 0x0fbc), (0x1000, 0x1049), (0x1050, 0x109d),
    (0x1100, 0x11ff), (0x1780, 0x17b3), (0x17b6, 0x17d3), (0x17d7, 0x17d7), (0x17dc, 0x17dd), (0x17e0, 0x17e9),
    (0x2e80, 0x2e99), (0x2e9b, 0x2ef3), (0x2f00, 0x2fd5), (0x3005, 0x3007), (0x3021, 0x3029), (0x3038, 0x303b),
    (0x3041, 0x3096), (0x3099, 0x309a), (0x309d, 0x309f), (0x30a1, 0x30fa), (0x30fc, 0x30ff), (0x3105, 0x312f),
    (0x3131, 0x318e), (0x31a0, 0x31bf), (0x31f0, 0x31ff), (0x3400, 0x4dbf), (0x4e00, 0x9fff), (0xa960, 0xa97c),
    (0xa9e0, 0xa9fe), (0xaa60, 0xaa7f), (0xac00, 0xd7a3), (0xd7b0, 0xd7fb), (0xf900, 0xfad9), (0xff66, 0xffdc),
    (0x1aff0, 0x1b2fb), (0x20000, 0x3fffd),
];

/// The ranges of characters that form words: the first and the last.
#[rustfmt::skip]
#[expect(clippy::unreadable_literal, reason = "they are codes, not quantities")]
const WORDS: [(u32, u32); 403] = [
    (48, 57), (65, 90), (97, 122), (170, 170), (178, 179), (181, 181), (185, 186), (188, 190), (192, 214), (216, 246),
    (248, 705), (710, 721), (736, 740), (748, 748), (750, 750), (880, 884), (886, 893), (895, 899), (902, 902),
    (904, 1013), (1015, 1153), (1162, 1369), (1376, 1416), (1419, 1422), (1424, 1424), (1480, 1522), (1525, 1535),
    (1541, 1541), (1564, 1565), (1568, 1610), (1632, 1641), (1646, 1647), (1649, 1747), (1749, 1749), (1765, 1766),
    (1774, 1788), (1791, 1791), (1806, 1806), (1808, 1808), (1810, 1839), (1867, 1957), (1969, 2026), (2036, 2037),
    (2042, 2069), (2074, 2074), (2084, 2084), (2088, 2088), (2094, 2095), (2111, 2136), (2140, 2141), (2143, 2275),
    (2303, 2303), (2308, 2361), (2365, 2365), (2384, 2384), (2392, 2401), (2406, 2415), (2417, 2432), (2436, 2491),
    (2493, 2493), (2501, 2502), (2505, 2506), (2510, 2518), (2520, 2529), (2532, 2545), (2548, 2553), (2556, 2560),
    (2564, 2619), (2621, 2621), (2627, 2630), (2633, 2634), (2638, 2640), (2642, 2671), (2674, 2676), (2678, 2688),
    (2692, 2747), (2749, 2749), (2758, 2758), (2762, 2762), (2766, 2785), (2788, 2799), (2802, 2816), (2820, 2875),
    (2877, 2877), (2885, 2886), (2889, 2890), (2894, 2901), (2904, 2913), (2916, 2927), (2929, 2945), (2947, 3005),
    (3011, 3013), (3017, 3017), (3022, 3030), (3032, 3058), (3067, 3072), (3076, 3133), (3141, 3141), (3145, 3145),
    (3150, 3156), (3159, 3169), (3172, 3198), (3200, 3201), (3204, 3259), (3261, 3261), (3269, 3269), (3273, 3273),
    (3278, 3284), (3287, 3297), (3300, 3329), (3332, 3389), (3397, 3397), (3401, 3401), (3406, 3414), (3416, 3425),
    (3428, 3448), (3450, 3457), (3460, 3529), (3531, 3534), (3541, 3541), (3543, 3543), (3552, 3569), (3573, 3632),
    (3634, 3635), (3643, 3646), (3648, 3654), (3664, 3673), (3676, 3760), (3762, 3763), (3770, 3770), (3773, 3783),
    (3790, 3840), (3872, 3891), (3904, 3952), (3976, 3980), (3992, 3992), (4029, 4029), (4045, 4045), (4059, 4138),
    (4159, 4169), (4176, 4181), (4186, 4189), (4193, 4193), (4197, 4198), (4206, 4208), (4213, 4225), (4238, 4238),
    (4240, 4249), (4256, 4346), (4348, 4956), (4969, 5007), (5018, 5119), (5121, 5740), (5743, 5759), (5761, 5786),
    (5789, 5866), (5870, 5905), (5909, 5937), (5943, 5969), (5972, 6001), (6004, 6067), (6103, 6103), (6108, 6108),
    (6110, 6143), (6159, 6312), (6314, 6431), (6444, 6447), (6460, 6463), (6465, 6467), (6470, 6575), (6593, 6599),
    (6602, 6621), (6656, 6678), (6684, 6685), (6688, 6740), (6751, 6751), (6781, 6782), (6784, 6815), (6823, 6823),
    (6830, 6911), (6917, 6963), (6981, 7001), (7037, 7039), (7043, 7072), (7086, 7141), (7156, 7163), (7168, 7203),
    (7224, 7226), (7232, 7293), (7296, 7359), (7368, 7375), (7401, 7404), (7406, 7409), (7413, 7615), (7655, 7675),
    (7680, 8124), (8126, 8126), (8130, 8140), (8144, 8156), (8160, 8172), (8176, 8188), (8191, 8191), (8293, 8297),
    (8304, 8313), (8319, 8329), (8335, 8351), (8378, 8399), (8433, 8447), (8450, 8450), (8455, 8455), (8458, 8467),
    (8469, 8469), (8473, 8477), (8484, 8484), (8486, 8486), (8488, 8488), (8490, 8493), (8495, 8505), (8508, 8511),
    (8517, 8521), (8526, 8526), (8528, 8591), (9204, 9215), (9255, 9279), (9291, 9371), (9450, 9471), (9984, 9984),
    (10102, 10131), (11085, 11087), (11098, 11492), (11499, 11502), (11506, 11512), (11517, 11517), (11520, 11631),
    (11633, 11646), (11648, 11743), (11823, 11823), (11836, 11903), (11930, 11930), (12020, 12031), (12246, 12271),
    (12284, 12287), (12293, 12295), (12321, 12329), (12337, 12341), (12344, 12348), (12352, 12440), (12445, 12447),
    (12449, 12538), (12540, 12687), (12690, 12693), (12704, 12735), (12772, 12799), (12831, 12841), (12872, 12879),
    (12881, 12895), (12928, 12937), (12977, 12991), (13055, 13055), (13312, 19903), (19968, 42127), (42183, 42237),
    (42240, 42508), (42512, 42606), (42623, 42654), (42656, 42735), (42744, 42751), (42775, 42783), (42786, 42888),
    (42891, 43009), (43011, 43013), (43015, 43018), (43020, 43042), (43052, 43061), (43066, 43123), (43128, 43135),
    (43138, 43187), (43205, 43213), (43216, 43231), (43250, 43255), (43259, 43301), (43312, 43334), (43348, 43358),
    (43360, 43391), (43396, 43442), (43470, 43485), (43488, 43560), (43575, 43586), (43588, 43595), (43598, 43611),
    (43616, 43638), (43642, 43642), (43644, 43695), (43697, 43697), (43701, 43702), (43705, 43709), (43712, 43712),
    (43714, 43741), (43744, 43754), (43762, 43764), (43767, 44002), (44014, 55295), (57344, 64285), (64287, 64296),
    (64298, 64433), (64450, 64829), (64832, 65019), (65022, 65023), (65050, 65055), (65063, 65071), (65107, 65107),
    (65127, 65127), (65132, 65278), (65280, 65280), (65296, 65305), (65313, 65338), (65345, 65370), (65382, 65503),
    (65511, 65511), (65519, 65528), (65536, 65791), (65795, 65846), (65856, 65912), (65930, 65935), (65948, 65999),
    (66046, 66462), (66464, 66511), (66513, 67670), (67672, 67870), (67872, 67902), (67904, 68096), (68100, 68100),
    (68103, 68107), (68112, 68151), (68155, 68158), (68160, 68175), (68185, 68222), (68224, 68408), (68416, 69631),
    (69635, 69687), (69710, 69759), (69763, 69807), (69826, 69887), (69891, 69926), (69941, 69951), (69956, 70015),
    (70019, 70066), (70081, 70084), (70089, 71338), (71352, 74863), (74868, 94032), (94079, 94094), (94099, 118783),
    (119030, 119039), (119079, 119080), (119262, 119295), (119366, 119551), (119639, 120512), (120514, 120538),
    (120540, 120570), (120572, 120596), (120598, 120628), (120630, 120654), (120656, 120686), (120688, 120712),
    (120714, 120744), (120746, 120770), (120772, 126703), (126706, 126975), (127020, 127023), (127124, 127135),
    (127151, 127152), (127167, 127168), (127184, 127184), (127200, 127247), (127279, 127279), (127340, 127343),
    (127387, 127461), (127491, 127503), (127547, 127551), (127561, 127567), (127570, 127743), (127777, 127791),
    (127798, 127798), (127869, 127871), (127892, 127903), (127941, 127941), (127947, 127967), (127985, 127999),
    (128063, 128063), (128065, 128065), (128248, 128248), (128253, 128255), (128318, 128319), (128324, 128335),
    (128360, 128506), (128577, 128580), (128592, 128639), (128710, 128767), (128884, 917504), (917506, 917535),
    (917632, 917759), (918000, 1114111),
];

/// The characters with another form: the first and the last of a run and the distance between them, then the form of the
/// first and the distance between the forms. The form 0 is none.
#[rustfmt::skip]
const FORMS: [(u32, u32, u32, u32, u32); 263] = [
    (65, 90, 1, 97, 1), (181, 181, 1, 956, 0), (192, 197, 1, 97, 0), (198, 198, 1, 230, 0), (199, 200, 1, 99, 2),
    (201, 203, 1, 101, 0), (204, 207, 1, 105, 0), (208, 208, 1, 240, 0), (209, 210, 1, 110, 1), (211, 214, 1, 111, 0),
    (216, 216, 1, 248, 0), (217, 220, 1, 117, 0), (221, 221, 1, 121, 0), (222, 222, 1, 254, 0), (224, 229, 1, 97, 0),
    (231, 232, 1, 99, 2), (233, 235, 1, 101, 0), (236, 239, 1, 105, 0), (241, 242, 1, 110, 1), (243, 246, 1, 111, 0),
    (249, 252, 1, 117, 0), (253, 255, 2, 121, 0), (256, 261, 1, 97, 0), (262, 269, 1, 99, 0), (270, 271, 1, 100, 0),
    (272, 272, 1, 273, 0), (274, 283, 1, 101, 0), (284, 291, 1, 103, 0), (292, 293, 1, 104, 0), (294, 294, 1, 295, 0),
    (296, 304, 1, 105, 0), (306, 306, 1, 307, 0), (308, 309, 1, 106, 0), (310, 311, 1, 107, 0), (313, 318, 1, 108, 0),
    (319, 321, 2, 320, 2), (323, 328, 1, 110, 0), (330, 330, 1, 331, 0), (332, 337, 1, 111, 0), (338, 338, 1, 339, 0),
    (340, 345, 1, 114, 0), (346, 353, 1, 115, 0), (354, 357, 1, 116, 0), (358, 358, 1, 359, 0), (360, 371, 1, 117, 0),
    (372, 373, 1, 119, 0), (374, 376, 1, 121, 0), (377, 382, 1, 122, 0), (383, 383, 1, 115, 0), (385, 385, 1, 595, 0),
    (386, 388, 2, 387, 2), (390, 390, 1, 596, 0), (391, 391, 1, 392, 0), (393, 394, 1, 598, 1), (395, 395, 1, 396, 0),
    (398, 398, 1, 477, 0), (399, 400, 1, 601, 2), (401, 401, 1, 402, 0), (403, 403, 1, 608, 0), (404, 404, 1, 611, 0),
    (406, 406, 1, 617, 0), (407, 407, 1, 616, 0), (408, 408, 1, 409, 0), (412, 412, 1, 623, 0), (413, 413, 1, 626, 0),
    (415, 415, 1, 629, 0), (416, 417, 1, 111, 0), (418, 420, 2, 419, 2), (422, 422, 1, 640, 0), (423, 423, 1, 424, 0),
    (425, 425, 1, 643, 0), (428, 428, 1, 429, 0), (430, 430, 1, 648, 0), (431, 432, 1, 117, 0), (433, 434, 1, 650, 1),
    (435, 437, 2, 436, 2), (439, 439, 1, 658, 0), (440, 440, 1, 441, 0), (444, 444, 1, 445, 0), (452, 453, 1, 454, 0),
    (455, 456, 1, 457, 0), (458, 459, 1, 460, 0), (461, 462, 1, 97, 0), (463, 464, 1, 105, 0), (465, 466, 1, 111, 0),
    (467, 476, 1, 117, 0), (478, 479, 1, 97, 0), (480, 484, 2, 481, 2), (486, 487, 1, 103, 0), (488, 489, 1, 107, 0),
    (490, 493, 1, 111, 0), (494, 494, 1, 495, 0), (496, 496, 1, 106, 0), (497, 498, 1, 499, 0), (500, 501, 1, 103, 0),
    (502, 502, 1, 405, 0), (503, 503, 1, 447, 0), (504, 505, 1, 110, 0), (506, 507, 1, 97, 0), (508, 510, 2, 509, 2),
    (512, 515, 1, 97, 0), (516, 519, 1, 101, 0), (520, 523, 1, 105, 0), (524, 527, 1, 111, 0), (528, 531, 1, 114, 0),
    (532, 535, 1, 117, 0), (536, 537, 1, 115, 0), (538, 539, 1, 116, 0), (540, 540, 1, 541, 0), (542, 543, 1, 104, 0),
    (544, 544, 1, 414, 0), (546, 548, 2, 547, 2), (550, 551, 1, 97, 0), (552, 553, 1, 101, 0), (554, 561, 1, 111, 0),
    (562, 563, 1, 121, 0), (570, 570, 1, 11365, 0), (571, 571, 1, 572, 0), (573, 573, 1, 410, 0),
    (574, 574, 1, 11366, 0), (577, 577, 1, 578, 0), (579, 579, 1, 384, 0), (580, 580, 1, 649, 0),
    (581, 581, 1, 652, 0), (582, 590, 2, 583, 2), (768, 772, 1, 0, 0), (774, 780, 1, 0, 0), (783, 785, 2, 0, 0),
    (795, 795, 1, 0, 0), (803, 808, 1, 0, 0), (813, 814, 1, 0, 0), (816, 817, 1, 0, 0), (880, 882, 2, 881, 2),
    (886, 886, 1, 887, 0), (902, 904, 2, 940, 1), (905, 906, 1, 942, 1), (908, 910, 2, 972, 1), (911, 911, 1, 974, 0),
    (913, 929, 1, 945, 1), (931, 939, 1, 963, 1), (962, 962, 1, 963, 0), (975, 975, 1, 983, 0), (976, 976, 1, 946, 0),
    (977, 977, 1, 952, 0), (981, 981, 1, 966, 0), (982, 982, 1, 960, 0), (984, 1006, 2, 985, 2),
    (1008, 1008, 1, 954, 0), (1009, 1009, 1, 961, 0), (1012, 1012, 1, 952, 0), (1013, 1013, 1, 949, 0),
    (1015, 1015, 1, 1016, 0), (1017, 1017, 1, 1010, 0), (1018, 1018, 1, 1019, 0), (1021, 1023, 1, 891, 1),
    (1024, 1039, 1, 1104, 1), (1040, 1071, 1, 1072, 1), (1120, 1152, 2, 1121, 2), (1162, 1214, 2, 1163, 2),
    (1216, 1216, 1, 1231, 0), (1217, 1229, 2, 1218, 2), (1232, 1318, 2, 1233, 2), (1329, 1366, 1, 1377, 1),
    (4256, 4293, 1, 11520, 1), (4295, 4295, 1, 11559, 0), (4301, 4301, 1, 11565, 0), (7680, 7681, 1, 97, 0),
    (7682, 7687, 1, 98, 0), (7688, 7689, 1, 99, 0), (7690, 7699, 1, 100, 0), (7700, 7709, 1, 101, 0),
    (7710, 7711, 1, 102, 0), (7712, 7713, 1, 103, 0), (7714, 7723, 1, 104, 0), (7724, 7727, 1, 105, 0),
    (7728, 7733, 1, 107, 0), (7734, 7741, 1, 108, 0), (7742, 7747, 1, 109, 0), (7748, 7755, 1, 110, 0),
    (7756, 7763, 1, 111, 0), (7764, 7767, 1, 112, 0), (7768, 7775, 1, 114, 0), (7776, 7785, 1, 115, 0),
    (7786, 7793, 1, 116, 0), (7794, 7803, 1, 117, 0), (7804, 7807, 1, 118, 0), (7808, 7817, 1, 119, 0),
    (7818, 7821, 1, 120, 0), (7822, 7823, 1, 121, 0), (7824, 7829, 1, 122, 0), (7830, 7830, 1, 104, 0),
    (7831, 7831, 1, 116, 0), (7832, 7833, 1, 119, 2), (7835, 7835, 1, 115, 0), (7838, 7838, 1, 223, 0),
    (7840, 7863, 1, 97, 0), (7864, 7879, 1, 101, 0), (7880, 7883, 1, 105, 0), (7884, 7907, 1, 111, 0),
    (7908, 7921, 1, 117, 0), (7922, 7929, 1, 121, 0), (7930, 7934, 2, 7931, 2), (7944, 7951, 1, 7936, 1),
    (7960, 7965, 1, 7952, 1), (7976, 7983, 1, 7968, 1), (7992, 7999, 1, 7984, 1), (8008, 8013, 1, 8000, 1),
    (8025, 8031, 2, 8017, 2), (8040, 8047, 1, 8032, 1), (8072, 8079, 1, 8064, 1), (8088, 8095, 1, 8080, 1),
    (8104, 8111, 1, 8096, 1), (8120, 8121, 1, 8112, 1), (8122, 8123, 1, 8048, 1), (8124, 8124, 1, 8115, 0),
    (8126, 8126, 1, 953, 0), (8136, 8139, 1, 8050, 1), (8140, 8140, 1, 8131, 0), (8152, 8153, 1, 8144, 1),
    (8154, 8155, 1, 8054, 1), (8168, 8169, 1, 8160, 1), (8170, 8171, 1, 8058, 1), (8172, 8172, 1, 8165, 0),
    (8184, 8185, 1, 8056, 1), (8186, 8187, 1, 8060, 1), (8188, 8188, 1, 8179, 0), (8486, 8486, 1, 969, 0),
    (8490, 8490, 1, 107, 0), (8491, 8491, 1, 97, 0), (8498, 8498, 1, 8526, 0), (8544, 8559, 1, 8560, 1),
    (8579, 8579, 1, 8580, 0), (11264, 11310, 1, 11312, 1), (11360, 11360, 1, 11361, 0), (11362, 11362, 1, 619, 0),
    (11363, 11363, 1, 7549, 0), (11364, 11364, 1, 637, 0), (11367, 11371, 2, 11368, 2), (11373, 11373, 1, 593, 0),
    (11374, 11374, 1, 625, 0), (11375, 11376, 1, 592, 2), (11378, 11378, 1, 11379, 0), (11381, 11381, 1, 11382, 0),
    (11390, 11391, 1, 575, 1), (11392, 11490, 2, 11393, 2), (11499, 11501, 2, 11500, 2), (11506, 11506, 1, 11507, 0),
    (42560, 42604, 2, 42561, 2), (42624, 42646, 2, 42625, 2), (42786, 42798, 2, 42787, 2),
    (42802, 42862, 2, 42803, 2), (42873, 42875, 2, 42874, 2), (42877, 42877, 1, 7545, 0), (42878, 42886, 2, 42879, 2),
    (42891, 42891, 1, 42892, 0), (42893, 42893, 1, 613, 0), (42896, 42898, 2, 42897, 2), (42912, 42920, 2, 42913, 2),
    (42922, 42922, 1, 614, 0), (65296, 65305, 1, 48, 1), (65313, 65338, 1, 97, 1), (65345, 65370, 1, 97, 1),
    (66560, 66599, 1, 66600, 1),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn forms(text: &str) -> Vec<String> {
        words(text).map(|word| word.form).collect()
    }

    #[test]
    fn words_are_runs_of_letters_and_digits_without_case_and_accents() {
        assert_eq!(
            forms("label_status don't: Ärger, CAFE\u{301}S Ⅷ 42"),
            ["label", "status", "don", "t", "arger", "cafes", "ⅷ", "42"]
        );
        assert_eq!(forms("\u{301} \0—🎉"), Vec::<String>::new());
        assert_eq!(forms("straße İstanbul"), ["straße", "istanbul"]);
    }

    #[test]
    fn characters_of_scripts_without_spaces_are_words() {
        assert_eq!(forms("日本語text、カード"), ["日", "本", "語", "text", "カ", "ー", "ド"]);
        assert_eq!(forms("重新运行fix-batch后"), ["重", "新", "运", "行", "fix", "batch", "后"]);
        assert_eq!(forms("ที่API"), ["ท", "\u{e35}", "\u{e48}", "api"]);
        assert_eq!(forms("환불을"), ["환", "불", "을"]);
        assert_eq!(forms("ＡＰＩ２"), ["api2"]);
        assert_eq!(separated("(五十, Café)"), "五 十 cafe ");
    }

    #[test]
    fn places_include_the_accents_after_a_letter() {
        let text = "(E\u{301}te\u{301})";
        let found: Vec<&str> = words(text).map(|word| &text[word.range]).collect();
        assert_eq!(found, ["E\u{301}te\u{301}"]);
    }

    #[test]
    fn only_the_beginning_of_a_long_word_counts() {
        let long = "ä".repeat(MAX_WORD_BYTES + 10);
        assert_eq!(
            words(&long).map(|word| (word.form.len(), word.range.len())).collect::<Vec<_>>(),
            [(MAX_WORD_BYTES, long.len())]
        );
    }
}
