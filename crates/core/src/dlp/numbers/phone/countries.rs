//! Country calling codes (ITU E.164), and how long national numbers are behind them.

/// Least and most digits behind the code, and the codes.
const LENGTHS: &[(u8, u8, &[u16])] = &[
    (4, 5, &[290]),
    (4, 7, &[683, 690]),
    (4, 11, &[352]),
    (4, 12, &[598]),
    (5, 5, &[500, 682]),
    (5, 6, &[247]),
    (5, 7, &[676, 677, 678, 688]),
    (5, 8, &[686]),
    (5, 10, &[27, 64, 98, 685]),
    (5, 11, &[31]),
    (5, 12, &[358, 971]),
    (5, 13, &[43, 49, 82]),
    (6, 6, &[298, 299, 672, 687]),
    (6, 7, &[597]),
    (6, 8, &[386]),
    (6, 9, &[40, 46, 252, 376, 421, 508, 681, 689]),
    (6, 10, &[53, 95, 880]),
    (6, 11, &[375, 595]),
    (6, 12, &[39, 359, 381]),
    (6, 13, &[63]),
    (7, 7, &[238, 239, 246, 248, 269, 291, 297, 592, 673, 674, 680, 691, 692]),
    (7, 8, &[241, 599, 670, 675, 853, 961, 965, 975]),
    (7, 9, &[220, 231, 245, 265, 354, 355, 385, 423, 967, 968]),
    (7, 10, &[44, 48, 61, 84, 230, 243, 254, 263, 267, 353, 372, 960]),
    (7, 11, &[501, 503, 507, 679, 974]),
    (7, 12, &[86, 882, 972]),
    (7, 13, &[62, 90]),
    (
        8,
        8,
        &[
            45, 47, 216, 222, 223, 226, 227, 228, 232, 235, 236, 253, 257, 266, 268, 350, 356, 357, 370, 371, 373, 374,
            389, 505, 509, 800, 973, 993,
        ],
    ),
    (8, 9, &[32, 36, 51, 213, 224, 233, 237, 250, 258, 264, 377, 382, 387, 591, 852, 962, 963]),
    (8, 10, &[20, 60, 378, 506, 850, 855, 856, 964, 970, 976]),
    (8, 11, &[57, 65, 502, 504, 593, 886, 977]),
    (8, 12, &[92, 383, 883]),
    (8, 13, &[66, 81, 91]),
    (
        9,
        9,
        &[
            33, 34, 41, 93, 94, 211, 212, 218, 221, 240, 242, 244, 249, 251, 255, 256, 260, 261, 262, 351, 420, 590,
            594, 596, 992, 994, 995, 998,
        ],
    ),
    (9, 10, &[380, 881, 966, 996]),
    (9, 11, &[55, 56]),
    (9, 12, &[870]),
    (10, 10, &[1, 7, 52, 58, 225, 229]),
    (10, 11, &[54]),
    (10, 12, &[30, 234]),
    (11, 11, &[888]),
    (12, 12, &[878]),
];

/// No code has more digits.
const MOST_CODE: usize = 3;

/// Least and most digits by code; nothing where there is no such code.
static BY_CODE: [(u8, u8); 1000] = {
    let mut by_code = [(0, 0); 1000];
    let mut row = 0;
    while row < LENGTHS.len() {
        let (least, most, codes) = LENGTHS[row];
        let mut at = 0;
        while at < codes.len() {
            by_code[codes[at] as usize] = (least, most);
            at += 1;
        }
        row += 1;
    }
    by_code
};

/// A number with a country's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Country {
    pub(super) code_digits: usize,
    pub(super) least: usize,
    pub(super) most: usize,
}

/// The country that these digits begin with. No code is the beginning of another.
pub(super) fn country(digits: impl Iterator<Item = u8>) -> Option<Country> {
    let mut code = 0;
    for (place, digit) in digits.take(MOST_CODE).enumerate() {
        code = code * 10 + usize::from(digit);
        let (least, most) = BY_CODE[code];
        if most > 0 {
            return Some(Country { code_digits: place + 1, least: least.into(), most: most.into() });
        }
        if code == 0 {
            return None;
        }
    }
    None
}
