//! Vectors of texts: kept as one signed byte a number, compared by the cosine of their angle.

/// The most numbers of a vector. *Source:* the largest vectors that providers offer have 4,096.
pub const DIMENSIONS_MAX: usize = 4_096;

/// The steps that a number is rounded to, on each side of zero.
const STEPS: f32 = 127.0;

/// How far the likest of many vectors must be over the mean likeness, in standard deviations, to say anything.
/// *Source:* all-MiniLM-L6-v2 in rooms of `vocative-lab recall`: of queries whose answer was among the five likest
/// lines nine in ten are above 6.0; of those in a language that the model does not know half are below 5.5.
const STANDS_OUT_MIN: f32 = 6.0;
/// Among fewer vectors, no outlier can be recognised.
const COMPARED_MIN: usize = 1_000;

/// Whether the likest of the `compared` vectors says anything; `deviations` = how far its likeness is over the mean, in
/// standard deviations. Of few vectors each may.
#[must_use]
pub fn stands_out(deviations: f32, compared: usize) -> bool {
    compared < COMPARED_MIN || deviations >= STANDS_OUT_MIN
}

/// A vector of length one: `scale` times its numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Vector {
    /// What one step of the numbers is worth.
    pub scale: f32,
    /// The numbers, rounded.
    pub numbers: Vec<i8>,
}

impl Vector {
    /// Rounds what a model gave; `None` if it has no direction (all zero, or not finite), no numbers or too many.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)]
    pub fn of(numbers: &[f32]) -> Option<Self> {
        let length = numbers.iter().map(|it| it * it).sum::<f32>().sqrt();
        let largest = numbers.iter().fold(0.0_f32, |most, it| most.max(it.abs()));
        let is_usable = length.is_normal() && largest.is_normal();
        if !is_usable || numbers.len() > DIMENSIONS_MAX {
            return None;
        }
        let rounded = numbers
            .iter()
            .map(|it| (it / largest * STEPS).round() as i8);
        Some(Self {
            scale: largest / STEPS / length,
            numbers: rounded.collect(),
        })
    }

    /// The numbers as bytes, as they are stored.
    #[must_use]
    pub fn as_bytes(&self) -> Vec<u8> {
        self.numbers.iter().map(|it| it.cast_unsigned()).collect()
    }

    /// How alike the direction of a stored vector is, from -1 to 1; `None` if it has another number of dimensions.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn likeness(&self, scale: f32, stored: &[u8]) -> Option<f32> {
        if stored.len() != self.numbers.len() {
            return None;
        }
        let products = self
            .numbers
            .iter()
            .zip(stored)
            .map(|(a, b)| i32::from(*a) * i32::from(b.cast_signed()));
        Some(products.sum::<i32>() as f32 * self.scale * scale)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn likeness(a: &[f32], b: &[f32]) -> Option<f32> {
        let (a, b) = (Vector::of(a).unwrap(), Vector::of(b).unwrap());
        a.likeness(b.scale, &b.as_bytes())
    }

    #[test]
    fn of_many_vectors_one_must_stand_out() {
        for (deviations, compared, expected) in
            [(7.0, 20_000, true), (5.0, 20_000, false), (2.0, 10, true)]
        {
            let is_told = stands_out(deviations, compared);
            assert_eq!(is_told, expected, "{deviations} of {compared}");
        }
    }

    #[test]
    fn likeness_is_the_cosine_whatever_the_lengths_are() {
        let table: [(&[f32], &[f32], f32); 5] = [
            (&[1.0, 0.0], &[5.0, 0.0], 1.0),
            (&[1.0, 0.0], &[0.0, 3.0], 0.0),
            (&[1.0, 0.0], &[-1.0, 0.0], -1.0),
            (&[1.0, 1.0], &[1.0, 0.0], 0.707),
            (&[3e-5, 4e-5], &[4e5, 3e5], 0.96),
        ];
        for (a, b, expected) in table {
            let found = likeness(a, b).unwrap();
            assert!((found - expected).abs() < 0.01, "{a:?} {b:?}: {found}");
        }
        assert_eq!(likeness(&[1.0, 0.0], &[1.0, 0.0, 0.0]), None);
    }

    #[test]
    fn numbers_without_a_direction_are_no_vector() {
        let too_many = vec![1.0; DIMENSIONS_MAX + 1];
        let bad: [&[f32]; 6] = [
            &[],
            &[0.0, 0.0],
            &[f32::NAN, 1.0],
            &[f32::INFINITY, 1.0],
            &[f32::MAX, f32::MAX],
            &too_many,
        ];
        for numbers in bad {
            assert_eq!(Vector::of(numbers), None, "{:?}", numbers.get(..2));
        }
    }
}
