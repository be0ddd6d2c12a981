//! Letters for pictures: seven rows of five dots, drawn for this plot.

/// Dots across and down.
pub(super) const WIDTH: usize = 5;
pub(super) const HEIGHT: usize = 7;

/// From `!` to `~`: 35 dots each, row by row from the top left, the last in the lowest bit.
const GLYPHS: [u64; 94] = [
    0x1_0842_1004,
    0x2_9400_0000,
    0x2_95f5_7d4a,
    0x1_1f47_17c4,
    0x6_7222_2273,
    0x3_2544_564d,
    0x1_0800_0000,
    0x8884_2082,
    0x2_0821_0888,
    0x0957_5480,
    0x084f_9080,
    0x0000_1088,
    0x000f_8000,
    0x0000_018c,
    0x4222_2210,
    0x3_a33a_e62e,
    0x1_1842_108e,
    0x3_a211_111f,
    0x7_c441_062e,
    0x8ca9_7c42,
    0x7_e1e0_862e,
    0x1_910f_462e,
    0x7_c222_2108,
    0x3_a317_462e,
    0x3_a317_844c,
    0x18c0_3180,
    0x18c0_1088,
    0x8888_2082,
    0x01f0_7c00,
    0x2_0820_8888,
    0x3_a211_1004,
    0x3_a37a_de0e,
    0x3_a31f_c631,
    0x7_a31f_463e,
    0x3_a308_422e,
    0x7_2518_c65c,
    0x7_e10f_421f,
    0x7_e10f_4210,
    0x3_a30b_c62f,
    0x4_631f_c631,
    0x3_8842_108e,
    0x1_c421_0a4c,
    0x4_654c_5251,
    0x4_2108_421f,
    0x4_775a_c631,
    0x4_639a_ce31,
    0x3_a318_c62e,
    0x7_a31f_4210,
    0x3_a318_d64d,
    0x7_a31f_5251,
    0x3_e107_043e,
    0x7_c842_1084,
    0x4_6318_c62e,
    0x4_6318_c544,
    0x4_631a_d6aa,
    0x4_62a2_2a31,
    0x4_62a2_1084,
    0x7_c222_221f,
    0x3_9084_210e,
    0x4_2082_0821,
    0x3_8421_084e,
    0x1_1510_0000,
    0x0000_001f,
    0x2_0800_0000,
    0x00e0_be2f,
    0x4_216c_c63e,
    0x00e8_422e,
    0x42d9_c62f,
    0x00e8_fe0e,
    0x1_928e_2108,
    0x1f18_bc2e,
    0x4_216c_c631,
    0x1_00c2_108e,
    0x8061_0a4c,
    0x4_212a_6292,
    0x3_0842_108e,
    0x01aa_d631,
    0x016c_c631,
    0x00e8_c62e,
    0x01e8_fa10,
    0x00d9_bc21,
    0x016c_c210,
    0x00e8_383e,
    0x2_11c4_2126,
    0x0118_c66d,
    0x0118_c544,
    0x0118_d6aa,
    0x0115_1151,
    0x0118_bc2e,
    0x01f1_111f,
    0x8844_1082,
    0x1_0842_1084,
    0x2_0841_1088,
    0x008a_8800,
];
/// What stands for letters that are not here.
const UNKNOWN: u64 = 0x7_e318_c63f;

/// Whether a letter has a dot at a place.
pub(super) fn has_dot(letter: char, column: usize, row: usize) -> bool {
    let glyph = match letter {
        ' ' => 0,
        '!'..='~' => GLYPHS[letter as usize - '!' as usize],
        _ => UNKNOWN,
    };
    glyph >> (WIDTH * HEIGHT - 1 - (row * WIDTH + column)) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_look_like_themselves() {
        let drawn = |letter| -> Vec<String> {
            let dot = |column, row| if has_dot(letter, column, row) { '#' } else { '.' };
            (0..HEIGHT).map(|row| (0..WIDTH).map(|column| dot(column, row)).collect()).collect()
        };
        assert_eq!(drawn('A'), [".###.", "#...#", "#...#", "#####", "#...#", "#...#", "#...#"]);
        assert_eq!(drawn('7'), ["#####", "....#", "...#.", "..#..", ".#...", ".#...", ".#..."]);
        assert_eq!(drawn('~').concat().matches('#').count(), 5);
        assert_eq!(drawn(' ').concat().matches('#').count(), 0);
        assert_eq!(drawn('é')[0], "#####");
    }
}
